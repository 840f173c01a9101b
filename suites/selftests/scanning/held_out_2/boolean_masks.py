"""Masks and index arrays into outputs."""
import jax
import jax.numpy as jnp
import numpy as np


class Filter:
    def __init__(self, threshold):
        self.threshold = threshold
        self.score = jax.pmap(self._score)

    def _score(self, x):
        return jnp.linalg.norm(x)

    def best(self, x, k):
        scores = self.score(x)
        order = np.argsort(np.asarray(scores))[::-1][:k]
        return scores[order]  # finds: index-replicates-the-row

    def above(self, x):
        scores = self.score(x)
        keep = np.asarray(scores) > self.threshold
        chosen = scores[keep]  # finds: index-replicates-the-row
        return chosen, x[keep]

    def pick(self, x, i):
        scores = self.score(x)
        one = scores[i]  # finds: index-replicates-the-row
        return float(one), x[i]

    def table(self, x):
        scores = jax.device_get(self.score(x))
        return {i: s for i, s in enumerate(scores)}
