import jax
import numpy as np

targets = [1, 2, 3, 4, 5, 6, 7, 0]
rows = np.arange(8, dtype=np.float32)


def shift(perm):
    return jax.pmap(lambda x: jax.lax.ppermute(x, "i", perm), "i")(rows)


pairs = list(zip(range(8), targets, strict=True))
for perm in (pairs, zip(range(8), targets, strict=True), np.array(pairs)):
    try:
        print(type(perm).__name__, np.asarray(shift(perm)))
    except TypeError as error:
        print(type(perm).__name__, error)
