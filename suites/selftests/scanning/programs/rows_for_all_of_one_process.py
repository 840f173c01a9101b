import jax
import numpy as np

step = jax.pmap(lambda x: x.sum())


def main(batch):
    print(step(np.ones((jax.device_count(), 3))))
    return step(batch.reshape(jax.device_count(), -1, 3))
