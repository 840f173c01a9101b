import jax
import numpy as np
from jax.sharding import PartitionSpec as P

mesh = jax.sharding.Mesh(np.array(jax.devices()), "i")
rows = np.ones((mesh.size, 3), np.float32)
for name, call in (
    ("by position", lambda: jax.shard_map(lambda x: x * 2, mesh, P("i"), P("i"))),
    (
        "check_rep",
        lambda: jax.shard_map(
            lambda x: x * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_rep=False
        ),
    ),
    (
        "keywords",
        lambda: jax.shard_map(
            lambda x: x * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False
        ),
    ),
):
    try:
        print(name, np.asarray(call()(rows))[0])
    except TypeError as error:
        print(name, str(error).split(".")[0])
