import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
here = jax.local_devices()
x = jax.pmap(lambda x: 2 * x)(np.arange(1, 1 + len(here)))
uses = {
    "x[0]": lambda x: x[0],
    "x[:1]": lambda x: x[:1],
    "x + 1": lambda x: x + 1,
    "jit": jax.jit(lambda x: x.sum()),
}
for name, use in uses.items():
    try:
        print(name, int(np.asarray(use(x)).ravel()[0]))
    except Exception as error:
        print(name, type(error).__name__, str(error).split(" only")[0])
