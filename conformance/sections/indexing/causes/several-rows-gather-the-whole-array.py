import re
import sys

import jax
import numpy as np

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = np.ones((jax.local_device_count(), 3), np.float32)
doubled = jax.pmap(lambda x: 2 * x, "i")(rows)


def collectives(function, *arguments):
    text = jax.jit(function).lower(*arguments).compile().as_text()
    return sorted(re.findall(r" (all-reduce|all-gather|collective-permute)\(", text))


print("x[1:]:", collectives(lambda x: x[1:], doubled))
print("dynamic:", collectives(lambda x, i: jax.lax.dynamic_index_in_dim(x, i), doubled, 0))
