import jax
import numpy as np

rows = np.arange(8)
doubled = jax.pmap(lambda x: 2 * x)
print(doubled(rows))
print(doubled.lower(rows).compile()(rows))
