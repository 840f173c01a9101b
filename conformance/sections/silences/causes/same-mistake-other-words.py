import jax
import numpy as np

rows = np.ones((8, 3), np.float32)


def refused(where, make, *args):
    try:
        mapped = make()
    except ValueError as error:
        print(f"{where}, made:", str(error)[:62])
        return
    try:
        mapped(*args)
    except ValueError as error:
        print(f"{where}, called:", str(error)[:62])


refused("all unmapped", lambda: jax.pmap(lambda x: x, in_axes=None), rows)
refused("no leaves", lambda: jax.pmap(lambda x: x), ())
refused("a list", lambda: jax.pmap(lambda x, n: x, static_broadcasted_argnums=1), rows, [1])
refused("no devices", lambda: jax.pmap(lambda x: x, devices=[]), rows)
