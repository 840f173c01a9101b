import flax.linen as nn
import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows = np.ones((8, 5, 4), np.float32)  # a sequence for each device
layer = nn.RNN(nn.LSTMCell(4))
weights = layer.init(jax.random.key(0), rows)


def over(**options):
    specs = {"in_specs": P("i"), "out_specs": P("i")}
    return jax.jit(jax.shard_map(lambda x: layer.apply(weights, x), mesh=mesh, **specs, **options))


print(over(check_vma=False)(rows).shape)
over()(rows)
