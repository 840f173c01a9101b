import jax
import numpy as np

rows = jax.pmap(lambda x: 1 * x)(np.arange(8.0))
doubled = jax.pmap(lambda x: 2 * x, donate_argnums=0)
print("given once:", np.asarray(doubled(rows)))
print("given again:", doubled(rows))
