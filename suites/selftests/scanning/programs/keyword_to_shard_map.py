# from new_pmap@0.12.0.1 to shard_map@0.12.0.1
import jax

step = jax.pmap(lambda x, y: x + y)  # finds: body-keeps-the-mapped-axis

def main(a, b):
    return step(a, y=b)  # finds: shard-map-takes-no-keywords
