import os

import jax
import numpy as np

rows = jax.pmap(lambda x: x)(np.arange(8, dtype=np.float32))
doubled = jax.pmap(lambda x: 2 * x, donate_argnums=0)
doubled(rows)
try:
    doubled(rows)
except Exception as error:
    print(type(error).__name__, str(error)[:41], flush=True)
os._exit(0)  # what else is launched after this may hang
