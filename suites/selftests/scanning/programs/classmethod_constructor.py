import jax


class Runner:
    def __init__(self, step):
        self.step = step

    @classmethod
    def of(cls, body, axis):
        return cls(jax.pmap(body, axis_name=axis))

    def last(self, x):
        return self.step(x)[-1]  # finds: index-replicates-the-row


def main(body, x):
    return Runner.of(body, "i").last(x)
