import jax

scores = jax.pmap(lambda x: x.sum())

def collect(x):
    return list(scores(x))  # finds: iteration-goes-through-the-host
