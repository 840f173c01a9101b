import jax
import numpy as np


def body(x):
    if refuse:
        raise ValueError("not today")
    return 2 * x


refuse = True
doubled = jax.pmap(body)
for again in (True, True, False):
    refuse = again
    try:
        print(doubled(np.ones(8)))
    except Exception as error:
        print(type(error).__name__, error)
