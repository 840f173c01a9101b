import jax

step = jax.pmap(lambda x: x + 1)

def main(x):
    out = step(x)
    return out.sharding  # finds: outputs-in-a-named-sharding
