import os
import warnings

os.environ["JAX_PMAP_SHMAP_MERGE"] = "0"  # asks for the old pmap
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import jax
    import numpy as np

    rows = jax.pmap(lambda x: x)(np.arange(jax.device_count()))
told = [one for one in seen if "pmap_shmap_merge" in str(one.message).lower()]
print(f"{type(rows.sharding).__name__}, {len(told)} warnings")
