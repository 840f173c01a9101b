import jax
from flax import jax_utils

step = jax.pmap(lambda params, momentum: (params, momentum))


class Trainer:
    def setup(self, params, momentum):
        self.state = jax_utils.replicate((params, momentum))  # finds: device-put-stackers-gone

    def embedding(self):
        return self.state[0]["embedding"]

    def row(self):
        return self.state[0]["embedding"][0]  # finds: index-replicates-the-row
