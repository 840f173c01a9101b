import os
import sys

os.environ.pop("JAX_PMAP_SHMAP_MERGE", None)
import jax
import numpy as np
from absl import flags

# Of the two pmaps, the one that does not run by default.
sys.argv.append(f"--jax_pmap_shmap_merge={not jax.config.jax_pmap_shmap_merge}")
jax.config.config_with_absl()
flags.FLAGS(sys.argv)
result = jax.pmap(lambda x: x)(np.arange(jax.device_count()))
asked = flags.FLAGS.jax_pmap_shmap_merge
print(f"asked for the new pmap: {asked}; {type(result.sharding).__name__}")
