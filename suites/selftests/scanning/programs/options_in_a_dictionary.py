import jax

OPTIONS = {"axis_name": "i", "backend": "cpu"}

f = jax.pmap(lambda x: x, **OPTIONS)  # finds: backend-names-no-device
