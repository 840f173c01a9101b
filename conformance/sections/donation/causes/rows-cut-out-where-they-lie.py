import sys
from pathlib import Path

import jax
import jax.numpy as jnp

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))


def kept_in_memory(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(one.split()[1]) * 1024 for one in lines if one.startswith(what))


doubled = jax.pmap(lambda x: 2 * x, donate_argnums=0)
for _ in range(2):  # the first compiles
    rows = jax.block_until_ready(jnp.ones((jax.local_device_count(), 2**23)))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before = kept_in_memory("VmRSS")
    jax.block_until_ready(doubled(rows))
    more = (kept_in_memory("VmHWM") - before) / rows.nbytes
print("over twice the argument" if 1 + more > 2.3 else "twice the argument")
