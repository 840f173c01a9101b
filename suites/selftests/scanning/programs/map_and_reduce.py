import functools
import operator

import jax

step = jax.pmap(lambda x: x.sum())


def main(batches):
    losses = [step(x) for x in batches]  # finds: calls-run-python
    rows = list(map(lambda loss: loss[0], losses))  # finds: index-replicates-the-row
    total = functools.reduce(lambda a, b: a + b, losses)
    print(total[0])  # finds: index-replicates-the-row
    return rows, functools.reduce(operator.add, [1, 2])
