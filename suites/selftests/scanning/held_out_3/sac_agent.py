"""Soft actor-critic with three networks, updated together in one map."""
import collections
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax


class Agent(NamedTuple):
    actor: Any
    critic: Any
    target: Any
    alpha: Any


class SAC:
    def __init__(self, nets, seed=0, tau=0.005):
        self.nets = nets
        self.tau = tau
        self.tx = optax.adam(3e-4)
        self.rng = jax.random.PRNGKey(seed)
        self.update_fn = jax.pmap(self._update, axis_name="dev")
        self.act_fn = jax.jit(self._act)
        self.agent = None

    def init(self, obs):
        self.rng, key = jax.random.split(self.rng)
        agent = self.nets.init(key, obs)
        self.agent = jax.device_put_replicated(agent, jax.local_devices())  # finds: device-put-stackers-gone

    def _act(self, actor, obs):
        return jnp.tanh(obs @ actor)

    def _update(self, agent, batch):
        def loss(critic):
            return jnp.mean((batch["obs"] @ critic - batch["reward"]) ** 2)

        value, grads = jax.value_and_grad(loss)(agent.critic)
        grads = jax.lax.pmean(grads, "dev")
        critic = agent.critic - 3e-4 * grads
        target = (1 - self.tau) * agent.target + self.tau * critic
        return agent._replace(critic=critic, target=target), {"critic_loss": value}

    def learn(self, buffer, updates):
        logs = collections.defaultdict(list)
        for _ in range(updates):
            self.agent, info = self.update_fn(self.agent, buffer.sample())  # finds: own-output-traced-again
            for name, value in info.items():
                logs[name].append(value[0])  # finds: index-replicates-the-row
        return {name: np.mean(values) for name, values in logs.items()}

    def act(self, obs):
        actor = jax.tree.map(lambda x: x[0], self.agent.actor)  # finds: index-replicates-the-row
        action = self.act_fn(actor, obs)
        return np.asarray(action)[0]
