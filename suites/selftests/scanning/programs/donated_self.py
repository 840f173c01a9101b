# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

class Trainer:
    def __init__(self, state):
        self.state = state
        self.step = jax.pmap(lambda s, x: s + x, donate_argnums=(0,))

    def train(self, x):
        out = self.step(self.state, x)
        print(self.state.mean())  # finds: deleted-argument-other-error
        self.state = out
