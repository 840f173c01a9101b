import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
barrier = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")
program = jax.pmap(lambda x: jax.lax.psum(10 * x, "i"), "i")
order = [("barrier", barrier), ("program", program)][:: -1 if jax.process_index() % 2 else 1]
ones = np.ones(jax.local_device_count())
got = {name: int(function(ones).addressable_data(0)[0]) for name, function in order}
print("the barrier counts", got["barrier"], "devices, the program sums to", got["program"])
