# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax

def on_first(x):
    return jax.device_put(x, jax.SingleDeviceSharding(jax.local_devices()[0]))  # finds: names-that-never-were
