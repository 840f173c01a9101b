import jax

devices = jax.devices()
pairs = jax.pmap(lambda x: x, devices=devices[::2] + devices[1::2])  # finds: devices-of-a-process-not-in-a-row
plain = jax.pmap(lambda x: x, devices=jax.devices())
