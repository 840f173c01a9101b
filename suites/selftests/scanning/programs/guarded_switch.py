import jax
import numpy as np


def disable_new_pmap():
    """Older JAX only: jax_pmap_shmap_merge went away in 0.10."""
    if hasattr(jax.config, "jax_pmap_shmap_merge"):
        jax.config.update("jax_pmap_shmap_merge", False)


disable_new_pmap()


def body(x):
    first = x[0]
    return x - first, first


centre = jax.pmap(body)


def run(x):
    centred, firsts = centre(x)
    centred_host, firsts_host = jax.device_get((centred, firsts))
    return centred_host[0], firsts_host[0]


if __name__ == "__main__":
    n = jax.local_device_count()
    print(run(np.arange(4.0 * n).reshape(n, 4)))
