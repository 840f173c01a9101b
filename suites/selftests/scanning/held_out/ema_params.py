import jax
import jax.numpy as jnp

ema = jax.pmap(lambda old, new: 0.9 * old + 0.1 * new, donate_argnums=0)


class Averager:
    def __init__(self, params):
        self.average = params

    def update(self, params):
        self.average = ema(self.average, params)  # finds: own-output-traced-again

    def value(self):
        return jax.tree.map(lambda x: x[0], self.average)  # finds: index-replicates-the-row
