import jax

def make(shape, devices):
    return jax.sharding.PmapSharding.default(shape, devices=devices)  # finds: pmap-sharding-gone
