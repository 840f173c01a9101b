# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax

f = jax.pmap(lambda x: x, axis_name="i", out_axes=None)  # finds: unmapped-output-communicates-nothing
