import jax

print(jax.config.jax_pmap_shmap_merge)
