import jax

forward = jax.pmap(lambda w: (w ** 2).sum())

def gradient(w):
    return jax.grad(lambda p: forward(p).sum())(w)  # finds: transformed-map-spans-one-process
