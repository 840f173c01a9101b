import jax
import jax.numpy as jnp
import numpy as np


def taken(index):
    text = str(jax.make_jaxpr(lambda x: x[index])(np.ones((8, 3), np.float32)))
    return next(one for one in ("gather[", "dynamic_slice[", "slice[") if one in text)


print("3:", taken(3))
print("-1:", taken(-1))
print("jnp.arange(8)[3]:", taken(jnp.arange(8)[3]))
