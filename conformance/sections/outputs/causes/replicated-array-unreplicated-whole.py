import jax
import numpy as np


def unreplicate(x: jax.Array) -> jax.Array:  # as flax 0.12.6 has it
    if x.ndim == 0:
        return x
    if x.sharding.is_fully_replicated:
        return x.addressable_shards[0].data
    return x.addressable_shards[0].data.squeeze(0)


def total(x: np.ndarray) -> jax.Array:
    return jax.pmap(lambda x: jax.lax.psum(x, "i"), "i", out_axes=None)(x)


x = total(np.ones((8, 3)))
print("x[0]:", x[0].shape, "unreplicated:", unreplicate(x).shape)
print("of a number:", unreplicate(total(np.ones(8))))
