import jax

scaled = jax.pmap(lambda x, scale: x * scale, in_axes=(0, None))


def main(x, scale):
    scale = jax.device_put(scale, jax.local_devices()[0])
    return scaled(x, scale)
