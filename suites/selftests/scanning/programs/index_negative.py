import jax

f = jax.pmap(lambda x: x * 3)

def last(x):
    return f(x)[-1]  # finds: index-replicates-the-row
