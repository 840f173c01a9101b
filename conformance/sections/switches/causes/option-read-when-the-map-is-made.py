import jax
import numpy as np

rows = np.arange(jax.device_count())
for before, after in ((True, False), (False, True)):
    jax.config.update("jax_pmap_shmap_merge", before)
    doubled = jax.pmap(lambda x: 2 * x)
    jax.config.update("jax_pmap_shmap_merge", after)
    print(f"{before}, then {after}: {type(doubled(rows).sharding).__name__}")
