import jax
import numpy as np
from jax.experimental import io_callback


def log(x):
    return io_callback(lambda v: v, jax.ShapeDtypeStruct((), np.float32), x, ordered=True)


print(jax.pmap(log, "i")(np.arange(8, dtype=np.float32)))
