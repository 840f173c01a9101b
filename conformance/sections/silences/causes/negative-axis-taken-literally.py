import jax
import numpy as np

rows = np.ones((8, 8, 3))
for axes in ({"out_axes": -1}, {"in_axes": -2}, {"in_axes": -3}):
    try:
        print(axes, jax.pmap(lambda x: x, "i", **axes)(rows).shape)
    except Exception as error:
        print(axes, type(error).__name__, str(error)[:66])
