import jax

if jax.config.jax_pmap_shmap_merge:  # finds: merge-option-gone
    print("new pmap")
if hasattr(jax.config, "jax_pmap_shmap_merge"):
    print(jax.config.jax_pmap_shmap_merge)
print(getattr(jax.config, "jax_pmap_shmap_merge", True))
