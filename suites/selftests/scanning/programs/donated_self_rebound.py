# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

class Trainer:
    def __init__(self, state):
        self.state = state
        self.step = jax.pmap(lambda s, x: s + x, donate_argnums=(0,))

    def train(self, x):
        self.state = self.step(self.state, x)
        return self.state
