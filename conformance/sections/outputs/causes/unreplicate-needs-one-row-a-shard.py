import jax
import numpy as np


def unreplicate(x: jax.Array) -> jax.Array:  # as flax 0.12.6 has it
    if x.sharding.is_fully_replicated:
        return x.addressable_shards[0].data
    return x.addressable_shards[0].data.squeeze(0)


x = jax.pmap(lambda x: x, "i", out_axes=1)(np.ones((8, 3)))
print("x[0]:", x[0].shape)
try:
    unreplicate(x)
except ValueError as error:
    print(error)
