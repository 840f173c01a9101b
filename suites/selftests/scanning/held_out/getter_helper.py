import operator
import jax

step = jax.pmap(lambda p, b: (p, b.mean()))


def first(tree):
    return jax.tree.map(operator.itemgetter(0), tree)  # finds: index-replicates-the-row


def main(params, batch):
    params, loss = step(params, batch)
    return first(loss)
