import jax

f = jax.vmap(lambda x: x + 1)
g = jax.pmap(lambda x: x + 1)

def main(x):
    y = f(x)
    return y[0]
