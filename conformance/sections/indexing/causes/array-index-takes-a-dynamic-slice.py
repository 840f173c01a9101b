import logging

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def taken(index):
    text = str(jax.make_jaxpr(lambda x: x[index])(np.ones((8, 3), np.float32)))
    return next(one for one in ("gather[", "dynamic_slice[", "slice[") if one in text)


print("3:", taken(3))
print("-1:", taken(-1))
index = jnp.arange(8)[3]
print("jnp.arange(8)[3]:", taken(index))

by_rows = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), PartitionSpec("i"))
rows = jax.device_put(np.ones((8, 3), np.float32), by_rows)
messages = []  # which name what is compiled for the index outside jit
handler = logging.Handler()
handler.emit = lambda record: messages.append(record.getMessage())
logging.getLogger("jax").addHandler(handler)
with jax.log_compiles():
    jax.block_until_ready(rows[index])
names = [one for one in ("dynamic_slice", "gather") if any(f"jit({one})" in m for m in messages)]
print("jnp.arange(8)[3], outside jit:", *names)
