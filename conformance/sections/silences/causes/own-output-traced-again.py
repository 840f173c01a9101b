import jax
import numpy as np

traces = []


def double(x):
    traces.append(1)
    return 2 * x


doubled = jax.pmap(double, "i")
rows = np.ones((8, 3))
for _ in range(4):
    rows = doubled(rows)
    print(len(traces), end=" ")
