from jax import device_put_sharded

print(device_put_sharded)
