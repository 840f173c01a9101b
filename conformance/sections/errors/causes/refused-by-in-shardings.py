import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.arange(64).reshape(8, 8)
by_columns = jax.device_put(rows, NamedSharding(mesh, P(None, "i")))
on_one_device = jax.device_put(rows, jax.devices()[0])
for x in (by_columns, on_one_device):
    try:
        jax.pmap(lambda row: 2 * row)(x)
        print("no error")
    except ValueError as error:
        print(str(error).split(". ")[0])
