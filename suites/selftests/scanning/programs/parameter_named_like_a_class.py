import jax


class EvalLoop:
    def __init__(self, f):
        self.step = jax.pmap(f)

    def rows(self, x):
        return self.step(x)


def report(loop, x, i):
    print(loop.rows(x)[0])  # finds: index-replicates-the-row
    return {key: value[i] for key, value in loop.rows(x).items()}  # finds: index-replicates-the-row


def other(runner, x):
    return runner.rows(x)[0]
