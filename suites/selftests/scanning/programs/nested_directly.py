from jax import pmap

both = pmap(pmap(lambda x: x + 1))  # finds: nested-pmap-refused
