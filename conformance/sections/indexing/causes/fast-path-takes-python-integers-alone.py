import jax
import numpy as np

doubled = jax.pmap(lambda x: 2 * x)(np.ones((8, 3), np.float32))
for index in (1, np.int32(1), jax.numpy.int32(1), -7):
    print(repr(index), "leaves the row on", doubled[index].devices())
