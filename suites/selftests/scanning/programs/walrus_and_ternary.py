import jax

f = jax.pmap(lambda x: x + 1)

def main(x, flag):
    if (y := f(x)) is not None:
        return y[0] if flag else y  # finds: index-replicates-the-row
    return None
