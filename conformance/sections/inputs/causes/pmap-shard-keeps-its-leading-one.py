import jax
import numpy as np

output = jax.pmap(lambda row: row)(np.ones((8, 3)))
print(type(output.sharding).__name__, output.sharding.shard_shape(output.shape))
