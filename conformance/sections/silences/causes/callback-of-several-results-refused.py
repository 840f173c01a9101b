import jax
import numpy as np

row = jax.ShapeDtypeStruct((3,), np.float32)


def double(x):
    return jax.pure_callback(lambda x: (np.asarray(x), 2 * np.asarray(x)), (row, row), x)


rows = np.ones((len(jax.devices()), 3), np.float32)
print(np.array([[float(np.asarray(out).sum()) for out in jax.pmap(double, "i")(rows)]]))
