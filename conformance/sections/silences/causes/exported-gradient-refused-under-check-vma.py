import jax
import numpy as np
from jax import export
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

square = jax.jit(lambda x: x * x)
model = export.export(square)(jax.ShapeDtypeStruct((1,), np.float32)).call
body = jax.grad(lambda x: model(x).sum())
rows = np.arange(1, 1 + jax.device_count(), dtype=np.float32)
mesh = Mesh(np.array(jax.devices()), ("i",))
for check in (False, True):
    mapped = jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=check)
    print(jax.jit(mapped)(rows))
