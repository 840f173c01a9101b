import warnings

import jax

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    jax.config.update("jax_pmap_shmap_merge", False)
for one in seen:
    print(one.message)
