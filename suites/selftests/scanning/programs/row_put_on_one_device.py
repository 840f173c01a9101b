import jax

step = jax.pmap(lambda x: x.sum())


def main(x, args, sharding):
    y = step(x)
    a = jax.device_put(y, args.actor_device)
    b = jax.device_put(y, jax.devices()[0])
    return a, b, jax.device_put(y, sharding)  # finds: output-not-put-on-all-devices
