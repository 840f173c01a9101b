import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

by_columns = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P(None, "i"))
for where in (jax.devices()[0], by_columns):
    rows = jax.device_put(jnp.ones((8, 16)), where)
    try:
        jax.pmap(lambda x: 2 * x, donate_argnums=0)(rows)
        print("taken, the original", "deleted" if rows.is_deleted() else "kept")
    except ValueError as error:
        print(str(error).split(". ")[0], "(original deleted)" if rows.is_deleted() else "(kept)")
