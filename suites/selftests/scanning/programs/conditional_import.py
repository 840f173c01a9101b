try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map
import jax

pmapped = jax.pmap(lambda x: x)

def main(x):
    out = pmapped(x)
    if out is None:
        return None
    return out[1]  # finds: index-replicates-the-row
