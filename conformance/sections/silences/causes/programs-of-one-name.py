import jax
import numpy as np


def train_step(x):
    return x * 2


rows = np.ones((jax.local_device_count(), 3), np.float32)
compiled = jax.pmap(train_step, "i").lower(rows).compile()
print(compiled.as_text().partition(",")[0])
