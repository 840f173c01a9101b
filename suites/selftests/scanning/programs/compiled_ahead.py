import jax

f = jax.pmap(lambda x: x + 1)

def build(x):
    lowered = f.lower(x)
    return lowered.compile()  # finds: compiled-stage-is-global
