import jax
import jax.numpy as jnp

evaluate = jax.pmap(lambda p, x: (jnp.sum(x), x.shape[0]), in_axes=(None, 0))


def accuracy(params, batches):
    right = seen = 0
    for x in batches:
        r, n = evaluate(params, x)  # finds: calls-run-python
        right += r.sum()
        seen += n.sum()
    return right / seen
