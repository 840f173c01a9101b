"""A row of the output is combined with an array on one device."""
import jax
import jax.numpy as jnp
import numpy as np

device = jax.local_devices()[0]
predict = jax.pmap(lambda x: x.sum(-1))


def residual(x, target):
    y = predict(x)  # finds: calls-run-python
    target = jax.device_put(target, device)
    return y - target  # finds: results-stay-on-all-devices


def residual_numpy(x, target):
    y = np.asarray(predict(x))
    return y - np.asarray(target)


def residual_uncommitted(x, target):
    return predict(x) - jnp.asarray(target)


def residual_one_device(x, target):
    x = jax.device_put(x, device)
    target = jax.device_put(target, device)
    return x.sum(-1) - target


def main():
    n = jax.local_device_count()
    x, t = np.ones((n, 3)), np.ones(n)
    for f in (residual, residual_numpy, residual_uncommitted, residual_one_device):
        print(f.__name__, f(x, t))
