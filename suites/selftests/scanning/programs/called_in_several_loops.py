import jax

step = jax.pmap(lambda x: x + 1)
loss = jax.pmap(lambda x: x.sum())


def train(batches):
    for batch in batches:
        step(batch)  # finds: calls-run-python
    for batch in batches:
        loss(batch)
    return [step(batch) for batch in batches]
