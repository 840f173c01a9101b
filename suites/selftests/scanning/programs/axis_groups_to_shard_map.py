# from new_pmap@0.12.0.1 to shard_map@0.12.0.1
import jax

@jax.pmap  # finds: body-keeps-the-mapped-axis
def scale(x):
    return x * 2
