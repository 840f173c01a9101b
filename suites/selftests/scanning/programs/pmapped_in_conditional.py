import jax

def make(use_pmap):
    if use_pmap:
        step = jax.pmap(lambda x: x * 2)
    else:
        step = jax.jit(lambda x: x * 2)
    return step

def main(x):
    step = make(True)
    return step(x)[0]  # finds: index-replicates-the-row
