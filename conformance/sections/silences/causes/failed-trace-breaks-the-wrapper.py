import jax
import numpy as np


def body(x):
    if refuse:
        raise ValueError("not today")
    return 2 * x


refuse = True
doubled = jax.pmap(body)
for refuse in (True, True, False):
    try:
        print(doubled(np.ones(8)))
    except Exception as error:
        print(type(error).__name__, error)
