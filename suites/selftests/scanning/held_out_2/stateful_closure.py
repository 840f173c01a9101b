"""make_train returns closures that share a state dict."""
import jax
import jax.numpy as jnp
import numpy as np


def make_train(loss_fn, params, lr):
    store = {"params": params, "step": 0}

    @jax.pmap
    def grads_of(params, batch):
        return jax.value_and_grad(loss_fn)(params, batch)

    def train(batch):
        loss, grads = grads_of(store["params"], batch)  # finds: calls-run-python
        store["params"] = jax.tree.map(lambda p, g: p - lr * g, store["params"], grads)
        store["step"] += 1
        store["loss"] = loss
        return loss

    def report():
        return {"step": store["step"], "loss": float(store["loss"][0])}  # finds: index-replicates-the-row

    def export():
        return jax.tree.map(lambda p: p[0], store["params"])  # finds: index-replicates-the-row

    return train, report, export


def main(loss_fn, params, loader):
    n = jax.local_device_count()
    params = jax.tree.map(lambda p: np.stack([p] * n), params)
    train, report, export = make_train(loss_fn, params, 0.1)
    for batch in loader:
        train(batch)
        print(report())
    return export()
