import sys

import jax
import jax.numpy as jnp

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
doubled = jax.pmap(lambda x: 2 * x, donate_argnums=0)
rows = jnp.arange(float(jax.local_device_count()))  # on the default device, uncommitted
for _ in range(2):
    doubled(rows)
    print("deleted" if rows.is_deleted() else "kept")
