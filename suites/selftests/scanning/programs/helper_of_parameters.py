import jax


def replicated(f):
    return jax.pmap(f)


def unpmap(tree):
    """Return the first device's copy."""
    return jax.tree.map(lambda x: x[0], tree)  # finds: index-replicates-the-row


class Trainer:
    def first(self, tree):
        return jax.tree_util.tree_map(lambda leaf: leaf[0], tree)  # finds: index-replicates-the-row


def first_of_host(tree):
    return jax.tree.map(lambda x: x[0], jax.device_get(tree))


def doubled(tree):
    return jax.tree.map(lambda x: x * 2, tree)


def example(batch, config):
    batch = config.load(batch)
    return jax.tree.map(lambda x: x[0], batch)
