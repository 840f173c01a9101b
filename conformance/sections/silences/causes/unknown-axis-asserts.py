import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.arange(8, dtype=np.float32)
for check in (False, True):
    summed = jax.shard_map(
        lambda x: jax.lax.psum(x, "j"),
        mesh=mesh,
        in_specs=P("i"),
        out_specs=P("i"),
        check_vma=check,
    )
    try:
        jax.jit(summed)(rows)
    except Exception as error:
        print(f"{type(error).__name__}({error})")
