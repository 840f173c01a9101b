"""A trainer with an inner loop on the device and two optimisers in one dict."""
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Trainer:
    inner = 4

    def __init__(self, model, rates):
        self.model = model
        self.tx = {name: optax.sgd(rate) for name, rate in rates.items()}
        self.fns = {name: jax.pmap(self.make(name), axis_name="r") for name in rates}
        self.states = {}

    def make(self, name):
        def run(state, xs):
            def body(state, x):
                params, opt = state
                grads = jax.grad(lambda p: jnp.mean(self.model(p, x)))(params)
                updates, opt = self.tx[name].update(jax.lax.pmean(grads, "r"), opt)
                return (optax.apply_updates(params, updates), opt), optax.global_norm(grads)

            return jax.lax.scan(body, state, xs, length=self.inner)

        return run

    def init(self, params):
        n = jax.local_device_count()
        for name, tx in self.tx.items():
            state = (params, tx.init(params))
            self.states[name] = jax.tree.map(lambda x: np.stack([np.asarray(x)] * n), state)

    def train(self, loader):
        for xs in loader:
            for name, fn in self.fns.items():
                self.states[name], norms = fn(self.states[name], xs)  # finds: own-output-traced-again
                print(name, norms[0, -1])  # finds: index-replicates-the-row
        return {name: jax.device_get(state)[0] for name, state in self.states.items()}
