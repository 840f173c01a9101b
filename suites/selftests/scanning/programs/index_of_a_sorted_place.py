import jax
import numpy as np

run = jax.pmap(lambda key: (key, key.sum()))


def best(keys):
    samples, scores = run(keys)
    order = np.argsort(np.asarray(scores))
    return samples[order[-1]]  # finds: index-replicates-the-row
