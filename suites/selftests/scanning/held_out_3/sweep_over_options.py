"""Maps with every combination of options; a benchmark."""
import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np


def body(w, x):
    return w * 0.9 + x.mean()


def bench(fn, *args, repeats=20):
    fn(*args)
    start = time.perf_counter()
    for _ in range(repeats):
        out = fn(*args)
    jax.block_until_ready(out)
    return (time.perf_counter() - start) / repeats


def main():
    n = jax.local_device_count()
    w, x = np.zeros(n, np.float32), np.ones((n, 128), np.float32)
    results = {}
    for in_axes, name in itertools.product([0, (0, 0), (None, 0)], ["i", None]):
        options = {"axis_name": name} if name else {}
        fn = jax.pmap(body, in_axes=in_axes, **options)
        first = w[0] if in_axes == (None, 0) else w
        results[str(in_axes), name] = bench(fn, first, x)
        out = fn(first, x)  # finds: calls-run-python
        print(in_axes, name, out[0])  # finds: index-replicates-the-row
    results["jit"] = bench(jax.jit(body), w[0], x[0])
    for key, seconds in sorted(results.items(), key=str):
        print(key, seconds)
    return list(results.values())[0]
