import jax
import jax.numpy as jnp
import numpy as np
import optax


class Trainer:
    def __init__(self, loss_fn, params, lr=1e-3):
        self.devices = jax.local_devices()
        self.loss_fn = loss_fn
        self.tx = optax.adam(lr)
        self.params = jax.device_put_replicated(params, self.devices)  # finds: device-put-stackers-gone
        self.opt_state = jax.pmap(self.tx.init)(self.params)
        self._step = jax.pmap(self._train_step, axis_name="dp", donate_argnums=(0, 1))
        self.losses = []

    def _train_step(self, params, opt_state, batch):
        x, y = batch
        first = x[0]
        loss, grads = jax.value_and_grad(self.loss_fn)(params, x, y)
        grads = jax.lax.pmean(grads, "dp")
        updates, opt_state = self.tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, jax.lax.pmean(loss, "dp")

    def shard(self, arr):
        return arr.reshape((len(self.devices), -1) + arr.shape[1:])

    def fit(self, loader, epochs):
        for _ in range(epochs):
            for x, y in loader:
                batch = (self.shard(x), self.shard(y))
                self.params, self.opt_state, loss = self._step(self.params, self.opt_state, batch)  # finds: calls-run-python
                self.losses.append(loss[0])  # finds: index-replicates-the-row
        return np.mean(jax.device_get(self.losses))

    @property
    def weights(self):
        return jax.tree.map(lambda p: p[0], self.params)  # finds: index-replicates-the-row

    def first_loss(self):
        return self.losses[0]
