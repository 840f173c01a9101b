import jax

step = jax.pmap(lambda x: x)


def main(xs):
    first, *others = (step(x) for x in xs)  # finds: calls-run-python
    total = sum((step(x) for x in xs), start=0.0)
    print(others[0][0], first[0])  # finds: index-replicates-the-row
    worst = first.max(axis=-1)
    print(worst[0], first.max()[0])  # finds: index-replicates-the-row
    return total[0]  # finds: index-replicates-the-row
