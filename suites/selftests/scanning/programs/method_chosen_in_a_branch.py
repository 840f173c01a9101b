import jax


class Rollout:
    def __init__(self, devices):
        self.devices = devices
        if devices > 1:
            self.rollout = self.rollout_pmap
        else:
            self.rollout = self.rollout_vmap

    def single(self, key):
        return key.sum(), key

    def rollout_vmap(self, keys):
        return jax.vmap(self.single)(keys)

    def rollout_pmap(self, keys):
        return jax.pmap(self.single)(keys)

    def evaluate(self, keys):
        fitness, state = self.rollout(keys)
        if self.devices > 1:
            state = state[0]  # finds: index-replicates-the-row
        return fitness, state
