import warnings

import jax
import numpy as np

rows = np.ones((8, 3), np.float32)
doubled = jax.pmap(lambda x: 2 * x, "i")
under_jit = jax.jit(lambda x: doubled(x))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = under_jit(rows)
print("warned:", len(caught), any("jit-of-pmap" in str(one.message) for one in caught))
print(type(result.sharding).__name__)
warnings.simplefilter("ignore")
print("all-reduces:", under_jit.lower(rows).compile().as_text().count(" all-reduce("))
