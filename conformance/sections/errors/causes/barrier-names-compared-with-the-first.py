import sys

import jax
from jax.experimental import multihost_utils

jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
try:
    multihost_utils.sync_global_devices(f"of {jax.process_index()}")
    print("passed")
except AssertionError as error:
    print("AssertionError:", str(error)[:47])
