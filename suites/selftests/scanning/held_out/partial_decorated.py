from functools import partial
from jax import pmap, local_devices, device_put_replicated  # finds: gone-name-imported-names-no-replacement


@partial(pmap, axis_name="i", static_broadcasted_argnums=(1, 2))
def apply(x, train, rate):
    return x * rate if train else x


def main(params, x):
    params = device_put_replicated(params, local_devices())  # finds: device-put-stackers-gone
    y = apply(x, True, 0.5)
    head = y[:4]  # finds: several-rows-gather-the-whole-array
    return params, head
