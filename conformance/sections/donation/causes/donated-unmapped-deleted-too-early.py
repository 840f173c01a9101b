import sys

import jax
import jax.numpy as jnp

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
rows = jnp.ones((jax.local_device_count(), 4))
weights = jnp.ones(4)  # on the default device


def step(weights: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    return weights * 2, row + weights


stepped = jax.pmap(step, in_axes=(None, 0), out_axes=(None, 0), donate_argnums=0)
try:
    stepped(weights, rows)
    print("deleted" if weights.is_deleted() else "kept")
except RuntimeError as error:
    print(error)
