from jax import config
import jax

config.update("jax_enable_x64", True)
config.update("jax_pmap_shmap_merge", True)  # finds: merge-option-gone
