import sys

import jax
import numpy as np

sys.argv.append("--jax_pmap_shmap_merge=false")
jax.config.parse_flags_with_absl()
print(type(jax.pmap(lambda x: x)(np.arange(jax.device_count())).sharding).__name__)
