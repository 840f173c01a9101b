import jax

step = jax.pmap(lambda x: x + 1)

def main(x, y):
    y = jax.device_put(y, jax.local_devices()[0])
    out = step(x)
    return out[0] + y  # finds: index-replicates-the-row
