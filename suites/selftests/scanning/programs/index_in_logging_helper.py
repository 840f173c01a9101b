import jax
import numpy as np

train = jax.pmap(lambda s: (s, s.mean()), axis_name="d")

def to_host(tree):
    return jax.tree_util.tree_map(lambda x: np.asarray(x[0]), tree)  # finds: index-replicates-the-row

def main(state):
    state, loss = train(state)
    return to_host({"loss": loss})
