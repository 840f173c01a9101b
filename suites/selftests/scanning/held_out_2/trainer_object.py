"""A Trainer that keeps its state, its data and its logger on self."""
import dataclasses
import time
from typing import Any, Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax


@dataclasses.dataclass
class TrainerConfig:
    learning_rate: float = 1e-3
    log_every: int = 50
    num_steps: int = 1000


class Trainer:
    def __init__(self, config: TrainerConfig, apply_fn: Callable[..., Any], params: Any):
        self.config = config
        self.apply_fn = apply_fn
        self.tx = optax.adamw(config.learning_rate)
        self._step_fn = jax.pmap(self._update, axis_name="devices", donate_argnums=(0, 1))
        n = jax.local_device_count()
        stacked = jax.tree_util.tree_map(lambda p: np.broadcast_to(p, (n,) + p.shape), params)
        self.params = stacked
        self.opt_state = jax.pmap(self.tx.init)(stacked)

    def _update(self, params, opt_state, batch):
        def loss_fn(p):
            logits = self.apply_fn(p, batch["x"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        grads = jax.lax.pmean(grads, "devices")
        loss = jax.lax.pmean(loss, "devices")
        updates, opt_state = self.tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    def train_on(self, batch):
        self.params, self.opt_state, loss = self._step_fn(self.params, self.opt_state, batch)  # finds: own-output-traced-again
        return loss

    def fit(self, batches: Iterator[Any]) -> list[float]:
        history = []
        started = time.monotonic()
        for step in range(self.config.num_steps):
            loss = self.train_on(next(batches))
            if step % self.config.log_every == 0:
                value = float(loss[0])  # finds: index-replicates-the-row
                history.append(value)
                print(f"{step:6d} {value:.4f} {time.monotonic() - started:.1f}s")
        return history

    def export(self):
        """One copy of the parameters, on the host."""
        host = jax.device_get(self.params)
        return jax.tree_util.tree_map(lambda p: p[0], host)
