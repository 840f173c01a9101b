"""A base experiment and two subclasses; the step lives in the base."""
import abc

import jax
import jax.numpy as jnp
import numpy as np


class BaseExperiment(abc.ABC):
    def __init__(self, params):
        self._params = params
        self._p_step = jax.pmap(self._step, axis_name="d")
        self._p_eval = jax.pmap(self.evaluate_batch)

    @abc.abstractmethod
    def loss(self, params, batch): ...

    @abc.abstractmethod
    def evaluate_batch(self, params, batch): ...

    def _step(self, params, batch):
        loss, grads = jax.value_and_grad(self.loss)(params, batch)
        grads = jax.lax.pmean(grads, "d")
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss

    def step(self, batch):
        self._params, loss = self._p_step(self._params, batch)  # finds: own-output-traced-again
        return loss

    @property
    def params(self):
        return self._params


class Regression(BaseExperiment):
    def loss(self, params, batch):
        return jnp.mean((batch["x"] @ params["w"] - batch["y"]) ** 2)

    def evaluate_batch(self, params, batch):
        return jnp.abs(batch["x"] @ params["w"] - batch["y"]).mean()

    def evaluate(self, batches):
        errors = [self._p_eval(self._params, b) for b in batches]  # finds: calls-run-python
        return float(np.mean([e[0] for e in errors]))  # finds: index-replicates-the-row

    def coefficient(self):
        return self.params["w"][0]  # finds: index-replicates-the-row


class Constant(BaseExperiment):
    table = (1.0, 2.0)

    def loss(self, params, batch):
        return self.table[0] * jnp.mean(params["c"])

    def evaluate_batch(self, params, batch):
        return jnp.mean(params["c"])

    def summary(self, batch):
        loss = self.step(batch)
        return loss[-1]  # finds: index-replicates-the-row
