import os
import signal
import sys
import time

import jax

number = int(sys.argv[3])
jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), number, heartbeat_timeout_seconds=5)
print(jax.device_count())
if number == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(15)
