import jax

step = jax.pmap(lambda s: s + 1)
state = None


def advance(x):
    global state
    state = step(x)


def read():
    return state[0]  # finds: index-replicates-the-row


def counter(x):
    total = None

    def add():
        nonlocal total
        total = step(x)

    add()
    return total[1:]  # finds: several-rows-gather-the-whole-array
