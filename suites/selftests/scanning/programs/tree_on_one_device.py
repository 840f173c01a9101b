import jax

step = jax.pmap(lambda tree: tree)


def main(tree):
    first = jax.devices()[0]
    tree = jax.tree.map(lambda x: jax.device_put(x, first), tree)
    return step(tree)  # finds: refused-by-in-shardings
