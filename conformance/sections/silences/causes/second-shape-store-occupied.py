import jax
import numpy as np

doubled = jax.pmap(lambda x: 2 * x)
print(doubled(np.ones((8, 3))).shape)
print(doubled(np.ones((8, 2))).shape)
