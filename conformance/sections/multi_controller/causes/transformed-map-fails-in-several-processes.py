import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.ones((len(jax.local_devices()), 1), np.float32)


def total(x):
    """A map of its own for each call: up to 0.7 one that was traced before is of no more use."""
    return jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")(x)


for name, function in {
    "by itself": total,
    "under checkpoint": jax.checkpoint(total),
    "under jit": jax.jit(total),
    "under vmap": jax.vmap(total, 1, 1),
    "under scan": lambda x: jax.lax.scan(lambda c, _: (total(c), None), x, None, length=1)[0],
    "under grad": jax.grad(lambda x: total(x).sum()),
}.items():
    try:
        print(name, float(function(rows).addressable_data(0).ravel()[0]))
    except Exception as error:
        print(name, type(error).__name__, str(error)[:42])
