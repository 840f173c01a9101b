"""A step function in an experiment that a framework drives."""
import jax
import jax.numpy as jnp
import numpy as np


class Experiment:
    NON_BROADCAST_CHECKPOINT_ATTRS = {"_params": "params"}

    def __init__(self, mode, init_rng, config):
        self._config = config
        self._train = jax.pmap(self._train_fn, axis_name="i", donate_argnums=(0,))
        if mode == "train":
            init_rng = bcast_local_devices(init_rng)
            self._params = jax.pmap(self._init)(init_rng)

    def _init(self, rng):
        return {"w": jax.random.normal(rng, (4, 4))}

    def _train_fn(self, params, x):
        grads = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        grads = jax.lax.pmean(grads, "i")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), {"norm": jnp.linalg.norm(x)}

    def step(self, global_step, rng, writer=None):
        self._params, scalars = self._train(self._params, next(self._data()))
        scalars = get_first(scalars)
        if writer is not None:
            writer.write_scalars(int(get_first(global_step)), scalars)
        return scalars

    def _data(self):
        n = jax.local_device_count()
        while True:
            yield np.ones((n, 8, 4), np.float32)

    def snapshot_state(self):
        return {"params": jax.device_get(get_first(self._params))}


def get_first(xs):
    """Gets values from the first device."""
    return jax.tree_util.tree_map(lambda x: x[0], xs)  # finds: index-replicates-the-row


def bcast_local_devices(value):
    """Broadcasts an object to all local devices."""
    devices = jax.local_devices()

    def _replicate(x):
        return jax.device_put_sharded(len(devices) * [jnp.array(x)], devices)  # finds: device-put-stackers-gone

    return jax.tree_util.tree_map(_replicate, value)
