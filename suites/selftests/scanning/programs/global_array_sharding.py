import jax
import numpy as np

step = jax.pmap(lambda x: x + 1)

def place(x, sharding, other):
    whole = jax.make_array_from_process_local_data(sharding, x, (8, 4))
    if whole.sharding.is_equivalent_to(other, whole.ndim):
        return whole
    return jax.device_put(x, other)
