import jax
import numpy as np

for name in ("", 0, ("a", "b")):
    try:
        print(repr(name), jax.pmap(lambda x: 2 * x, name)(np.ones((8, 2))).shape)
    except ValueError as error:
        print(repr(name), error)
