# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax
import numpy as np

total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")

def count(rows):
    return np.asarray(total(rows))
