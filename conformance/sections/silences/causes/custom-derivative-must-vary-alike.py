import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


@jax.custom_vjp
def product(weight, x):
    return (weight * x).sum()


product.defvjp(lambda w, x: (product(w, x), (w, x)), lambda kept, g: (g * kept[1], g * kept[0]))
mesh = Mesh(np.array(jax.devices()), ("i",))


def over(**options):
    body = jax.grad(lambda w, x: product(w, x))
    specs = {"in_specs": (P(), P("i")), "out_specs": P("i")}
    return jax.jit(jax.shard_map(body, mesh=mesh, **specs, **options))


rows = np.arange(8.0)
print(over(check_vma=False)(np.ones(1), rows))
print(over()(np.ones(1), rows))
