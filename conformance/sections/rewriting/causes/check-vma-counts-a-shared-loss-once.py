import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.arange(8, dtype=np.float32)


def gradient(row):  # of a loss that is the same on all devices
    return jax.grad(lambda x: jax.lax.psum((x**2).sum(), "i"))(row)


print("pmap", jax.pmap(gradient, "i")(rows).tolist())
for checked in (False, True):
    specs = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i"), "check_vma": checked}
    print("check_vma", checked, jax.jit(jax.shard_map(gradient, **specs))(rows).tolist())
