import tempfile

import jax
import numpy as np
import orbax.checkpoint

weights = jax.pmap(lambda x: x + 1)(np.zeros((jax.local_device_count(), 3), np.float32))
with tempfile.TemporaryDirectory() as folder:
    checkpointer = orbax.checkpoint.PyTreeCheckpointer()
    checkpointer.save(folder + "/state", {"weights": weights})
    print(checkpointer.restore(folder + "/state")["weights"].shape)
