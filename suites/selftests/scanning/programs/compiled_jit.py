import jax

f = jax.jit(lambda x: x + 1)
g = jax.pmap(lambda x: x - 1)

def build(x):
    return f.lower(x).compile()
