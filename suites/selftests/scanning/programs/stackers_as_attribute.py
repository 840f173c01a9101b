import jax

put = jax.device_put_sharded  # finds: device-put-stackers-gone
