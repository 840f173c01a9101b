import jax


def keep_apart(part):
    return jax.device_put(part, jax.devices()[-1])
