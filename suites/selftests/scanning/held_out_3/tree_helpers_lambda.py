"""Small lambdas bound to names."""
import jax
import jax.numpy as jnp
import numpy as np

tm = jax.tree_util.tree_map
head = lambda tree: tm(lambda leaf: leaf[0], tree)  # finds: index-replicates-the-row
host = lambda tree: tm(np.asarray, tree)
mean = lambda tree: tm(jnp.mean, tree)
squeeze = lambda tree: tm(lambda leaf: leaf.reshape(-1), tree)

forward = jax.pmap(lambda p, x: {"y": x @ p, "n": jnp.linalg.norm(x)})


def main(p, x):
    out = forward(p, x)
    print(head(out), mean(out), squeeze(out))
    fetched = host(out)
    print(fetched["y"][0], fetched["n"][1:])
    return [v for v in fetched["n"]]
