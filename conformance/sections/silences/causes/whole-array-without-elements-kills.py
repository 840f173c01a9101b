import jax
import numpy as np

total = jax.pmap(lambda x, y: x.sum() + y.sum(), in_axes=(0, None))
print(total(np.ones((8, 3), np.float32), np.zeros(0, np.float32)))
