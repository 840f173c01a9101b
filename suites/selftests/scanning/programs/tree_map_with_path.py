import jax

step = jax.pmap(lambda x: {"loss": x.sum()})


def main(x):
    out = step(x)
    return jax.tree_util.tree_map_with_path(lambda path, leaf: (path, leaf[0]), out)  # finds: index-replicates-the-row
