import sys

import jax
from jax.experimental.multihost_utils import sync_global_devices

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
try:
    sync_global_devices(f"barrier of {jax.process_index()}")
    print("passed")
except AssertionError as error:
    print("refused:", error)
