import sys
import warnings

import jax
import jax.numpy as jnp

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
doubled = jax.pmap(lambda x: 2 * x, donate_argnums=0)
for _ in range(2):
    rows = jnp.arange(float(jax.local_device_count()))  # on the default device, uncommitted
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        doubled(rows)
    print("deleted," if rows.is_deleted() else "kept,", *(str(one.message) for one in said))
