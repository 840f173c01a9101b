import jax

class Learner:
    def __init__(self, network, devices):
        self._update = jax.pmap(self._step, axis_name="learners")
        self._network = network

    def _step(self, params, batch):
        loss = self._network.loss(params, batch).mean()
        return params, loss

    def run(self, params, batches):
        for batch in batches:
            params, self.last = self._update(params, batch)  # finds: own-output-traced-again
        return params

    def logged(self):
        return {"loss": self.last[0]}  # finds: index-replicates-the-row
