import warnings

import jax
import numpy as np

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    jax.config.update("jax_pmap_shmap_merge", False)
    rows = jax.pmap(lambda x: x)(np.arange(jax.device_count()))
told = [one for one in seen if "pmap_shmap_merge" in str(one.message)]
print(f"{type(rows.sharding).__name__}, {len(told)} warnings")
