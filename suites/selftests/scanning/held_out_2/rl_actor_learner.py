"""An actor and a learner in threads; the learner is a pmap."""
import queue
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax


class Params(NamedTuple):
    policy: jax.Array
    value: jax.Array


class Learner:
    def __init__(self, params: Params, optimizer, trajectories: queue.Queue):
        self._optimizer = optimizer
        self._queue = trajectories
        self._devices = jax.local_devices()
        self._update = jax.pmap(self._loss_and_update, axis_name="i")
        self._state = jax.device_put_replicated((params, optimizer.init(params)), self._devices)  # finds: device-put-stackers-gone
        self._lock = threading.Lock()

    def _loss_and_update(self, state, batch):
        params, opt_state = state
        grads = jax.grad(lambda p: jnp.mean((batch @ p.policy - batch @ p.value) ** 2))(params)
        updates, opt_state = self._optimizer.update(jax.lax.pmean(grads, "i"), opt_state)
        return (optax.apply_updates(params, updates), opt_state), jnp.mean(batch)

    def run(self, num_updates):
        for _ in range(num_updates):
            batch = self._queue.get()
            with self._lock:
                self._state, mean = self._update(self._state, batch)  # finds: own-output-traced-again

    def params_for_actors(self):
        with self._lock:
            return jax.tree.map(lambda x: x[0], self._state[0])  # finds: index-replicates-the-row


class Actor(threading.Thread):
    def __init__(self, learner, trajectories, seed):
        super().__init__(daemon=True)
        self._learner = learner
        self._queue = trajectories
        self._rng = np.random.default_rng(seed)
        self._act = jax.jit(lambda p, o: jnp.argmax(o @ p.policy, -1))

    def run(self):
        while True:
            params = self._learner.params_for_actors()
            observation = self._rng.standard_normal((8, 16, 4), np.float32)
            actions = self._act(params, observation)
            self._queue.put(observation)
            if int(actions[0, 0]) < 0:
                return
