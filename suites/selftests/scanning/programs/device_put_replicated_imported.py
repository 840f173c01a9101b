from jax import device_put_replicated, local_devices  # finds: gone-name-imported-names-no-replacement

def feed(params):
    return device_put_replicated(params, local_devices())  # finds: device-put-stackers-gone
