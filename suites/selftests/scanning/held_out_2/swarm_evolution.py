"""Evolution strategies: a population per device."""
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import random


@dataclass
class ES:
    dim: int
    sigma: float = 0.1
    lr: float = 0.02
    mean: np.ndarray = field(init=False)

    def __post_init__(self):
        self.mean = np.zeros(self.dim, np.float32)
        self.evaluate = jax.pmap(self._evaluate, in_axes=(None, 0), axis_name="pop")

    def _evaluate(self, mean, key):
        eps = random.normal(key, (32, self.dim))
        fitness = -jnp.sum((mean + self.sigma * eps) ** 2, -1)
        fitness = fitness - jax.lax.pmean(fitness.mean(), "pop")
        grad = jax.lax.pmean(fitness @ eps / 32, "pop")
        return grad, fitness

    def ask_tell(self, key):
        keys = random.split(key, jax.local_device_count())
        grad, fitness = self.evaluate(self.mean, keys)  # finds: calls-run-python
        self.mean = self.mean + self.lr * np.asarray(grad[0])  # finds: index-replicates-the-row
        return fitness.max()

    def run(self, steps, seed=0):
        key = random.PRNGKey(seed)
        best = []
        for _ in range(steps):
            key, sub = random.split(key)
            best.append(float(self.ask_tell(sub)))
        return best[-1], best[0], self.mean[0]
