import jax
from jax.sharding import PmapSharding  # finds: pmap-sharding-gone

def is_mapped(x):
    return isinstance(x.sharding, PmapSharding)
