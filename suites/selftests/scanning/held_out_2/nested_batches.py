"""Two levels of parallelism: pmap over ensembles, pmap over batches."""
import jax
import jax.numpy as jnp
import numpy as np


def predict(w, x):
    return jnp.tanh(x @ w)


over_batch = jax.pmap(predict, in_axes=(None, 0), axis_name="batch")
over_ensemble = jax.pmap(over_batch, in_axes=(0, None), axis_name="ensemble")  # finds: nested-pmap-refused
vmapped = jax.pmap(jax.vmap(predict, in_axes=(None, 0)), in_axes=(0, None))


@jax.pmap
def outer(x):
    inner = jax.vmap(lambda v: v * 2)
    return inner(x)


def main():
    w = np.ones((2, 8, 3), np.float32)
    x = np.ones((4, 16, 8), np.float32)
    y = over_ensemble(w, x)
    print(y.shape)
    z = vmapped(w, x)
    print(z.shape, np.asarray(z)[0])
    return outer(w)


if __name__ == "__main__":
    main()
