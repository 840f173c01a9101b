import jax
import numpy as np


class Trainer:
    rate = 2.0

    def step(self, x):
        return self.rate * x


rows = np.ones((jax.local_device_count(), 3), np.float32)
trainer = Trainer()
first = jax.pmap(trainer.step, "i")(rows)
trainer.rate = 5.0
second = jax.pmap(trainer.step, "i")(rows)
print(np.asarray(first)[0, 0], np.asarray(second)[0, 0])
