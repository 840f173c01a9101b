import jax

def feed(shards):
    return jax.device_put_sharded(shards, jax.local_devices())  # finds: device-put-stackers-gone
