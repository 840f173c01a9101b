import jax

jax.config.update("jax_pmap_shmap_merge", False)  # finds: merge-option-gone
