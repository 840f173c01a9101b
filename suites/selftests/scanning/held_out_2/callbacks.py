"""A loop with callbacks; each gets the outputs of the step."""
import abc
import csv

import jax
import jax.numpy as jnp
import numpy as np


class Callback(abc.ABC):
    def on_step(self, step, metrics): ...
    def on_end(self, state): ...


class CsvLogger(Callback):
    def __init__(self, path):
        self.file = open(path, "w", newline="")
        self.writer = csv.writer(self.file)

    def on_step(self, step, metrics):
        self.writer.writerow([step, *(float(np.mean(v)) for v in metrics.values())])

    def on_end(self, state):
        self.file.close()


class Printer(Callback):
    def on_step(self, step, metrics):
        print(step, metrics["loss"][0])  # finds: index-replicates-the-row


class Saver(Callback):
    def on_end(self, state):
        one = jax.tree.map(lambda x: x[0], state)  # finds: index-replicates-the-row
        np.savez("state.npz", **jax.device_get(one))


def body(state, batch):
    loss, grads = jax.value_and_grad(lambda s: jnp.mean((batch @ s["w"]) ** 2))(state)
    grads = jax.lax.pmean(grads, "b")
    return jax.tree.map(lambda p, g: p - 0.1 * g, state, grads), {"loss": loss}


def fit(state, loader, callbacks):
    step_fn = jax.pmap(body, axis_name="b")
    for step, batch in enumerate(loader):
        state, metrics = step_fn(state, batch)  # finds: own-output-traced-again
        for callback in callbacks:
            callback.on_step(step, metrics)
    for callback in callbacks:
        callback.on_end(state)
    return state


def main(loader):
    n = jax.local_device_count()
    state = {"w": np.zeros((n, 8), np.float32)}
    fit(state, loader, [CsvLogger("log.csv"), Printer(), Saver()])
