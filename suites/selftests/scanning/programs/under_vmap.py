import jax

forward = jax.pmap(lambda w: (w ** 2).sum())
batched = jax.vmap(forward)  # finds: transformed-map-spans-one-process
