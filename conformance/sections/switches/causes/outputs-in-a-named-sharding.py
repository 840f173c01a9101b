import jax
import numpy as np

sharding = jax.pmap(lambda x: 2 * x)(np.arange(jax.device_count())).sharding
print(type(sharding).__name__, hasattr(sharding, "sharding_spec"))
