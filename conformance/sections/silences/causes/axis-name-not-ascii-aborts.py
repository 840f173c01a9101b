import jax
import numpy as np

print(jax.pmap(lambda x: 2 * x, "\u00e5")(np.ones(8)).shape)
