import jax
import numpy as np
from jax.experimental import multihost_utils

predict = jax.pmap(lambda p, x: x @ p, in_axes=(None, 0))


def main(params, x):
    out = predict(params, x)
    host = jax.device_get(out)
    first = host[0]
    rows = [r for r in host]
    return first, rows
