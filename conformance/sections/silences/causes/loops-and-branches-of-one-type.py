import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.arange(8, dtype=np.float32)


def summed(x):
    return jax.lax.fori_loop(0, 3, lambda _, total: total + x, jnp.float32(0))


def over(body, **options):
    mapped = jax.shard_map(
        lambda x: body(x[0])[None], mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options
    )
    return jax.jit(mapped)


print(jax.pmap(summed)(rows))
print(over(summed, check_vma=False)(rows))
over(summed)(rows)
