import jax

def reduce(x):
    if jax.config.jax_pmap_shmap_merge:  # finds: merge-option-cannot-be-asked
        x = jax.device_get(x)
    return x.sum()
