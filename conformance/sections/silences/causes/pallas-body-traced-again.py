import jax
import numpy as np
from jax.experimental import pallas

traces = []


def kernel(x, out):
    out[...] = x[...] + x[...]


def double(x):
    traces.append(x)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pallas.pallas_call(kernel, out_shape=shape, interpret=True)(x)


mapped = jax.pmap(double)
for _ in range(3):
    jax.block_until_ready(mapped(np.ones((8, 3), np.float32)))
    print(len(traces), end=" ")
print()
