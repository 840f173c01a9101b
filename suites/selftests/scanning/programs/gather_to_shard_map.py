# from new_pmap@0.12.0.1 to shard_map@0.12.0.1
import jax

def gathered(x):
    return jax.lax.all_gather(x, "i")  # finds: all-gather-counts-as-varying

step = jax.pmap(gathered, axis_name="i")  # finds: body-keeps-the-mapped-axis
