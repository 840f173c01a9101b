import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
weight, rows = np.float32(1), np.arange(8, dtype=np.float32)


def mean_gradient(weight, row):  # of the data-parallel step, as pmap's users write it
    return jax.lax.pmean(jax.grad(lambda w: (w * row).sum())(weight), "i")


print("pmap", float(jax.pmap(mean_gradient, "i", in_axes=(None, 0))(weight, rows)[0]))
for checked in (False, True):
    specs = {"mesh": mesh, "in_specs": (P(), P("i")), "out_specs": P(), "check_vma": checked}
    print("check_vma", checked, float(jax.jit(jax.shard_map(mean_gradient, **specs))(weight, rows)))
