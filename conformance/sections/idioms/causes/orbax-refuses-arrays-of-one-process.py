import sys
import tempfile

import jax
import numpy as np
import orbax.checkpoint

if sys.argv[1:]:  # in several processes: ADDRESS PROCESSES PROCESS
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
weights = jax.pmap(lambda x: x + 1)(np.zeros((jax.local_device_count(), 3), np.float32))
folder = tempfile.gettempdir() + "/a-checkpoint-that-is-not-written"
with orbax.checkpoint.StandardCheckpointer() as checkpointer:
    try:
        checkpointer.save(folder, {"weights": weights}, force=True)
        print("saved")
    except ValueError as error:
        print(str(error).split(" (")[0])
