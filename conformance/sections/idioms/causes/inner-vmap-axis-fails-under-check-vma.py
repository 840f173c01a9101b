import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.arange(16, dtype=np.float32).reshape(8, 2)


def together(x):
    return jax.lax.pmean(x, ("i", "example"))


def apart(x):
    return jax.lax.pmean(jax.lax.pmean(x, "example"), "i")


for mean in (together, apart):

    def of_examples(row, mean=mean):
        return jax.vmap(mean, axis_name="example")(row.reshape(2))

    print(mean.__name__, "in pmap", jax.pmap(of_examples, "i")(rows)[0, 0])
    for checked in (False, True):
        specs = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i"), "check_vma": checked}
        try:
            print("check_vma", checked, jax.jit(jax.shard_map(of_examples, **specs))(rows)[0])
        except Exception as error:
            print("check_vma", checked, type(error).__name__, str(error)[:40])
