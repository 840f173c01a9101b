# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax

def body(x):
    return jax.lax.pmean(x, "i", axis_index_groups=[[0, 1, 2], [3]])  # finds: one-counts-the-first-group

f = jax.pmap(body, axis_name="i")
