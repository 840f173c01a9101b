import jax

scores = jax.pmap(lambda x: x.sum())

def collect(x):
    out = scores(x)
    return [one for one in reversed(out)]  # finds: iteration-goes-through-the-host
