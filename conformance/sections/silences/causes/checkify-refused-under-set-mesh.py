import jax
import jax.numpy as jnp
from jax.experimental import checkify


def program(x):
    checkify.check(jnp.min(x) > -1, "too small")
    return jax.pmap(lambda row: row * 2, "i")(x)


rows = jnp.ones((jax.device_count(), 3))
mesh = jax.make_mesh((jax.device_count(),), ("i",), (jax.sharding.AxisType.Auto,))
with jax.set_mesh(mesh):
    error, doubled = checkify.checkify(program)(rows)
print(error.get())
