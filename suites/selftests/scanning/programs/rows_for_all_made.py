import jax
import numpy as np

jax.distributed.initialize()  # finds: lost-peer-ends-in-sigabrt
step = jax.pmap(lambda x: x.sum())
count = jax.device_count()


def main(batch):
    print(step(np.ones((count, 3))))  # finds: row-count-is-not-checked
    print(step(np.random.randn(count, batch, 3).astype(np.float32)))  # finds: row-count-is-not-checked
    print(step(np.random.default_rng(0).normal(size=(count, 3))))  # finds: row-count-is-not-checked
    print(step(jax.random.split(jax.random.key(0), count)))  # finds: row-count-is-not-checked
    print(step(np.ones((batch // count, 3))))
    return step(np.ones((jax.local_device_count(), 3)))
