import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
from brax import envs
from brax.training import acting

from agents.ppo import losses, networks


def train(env_name, num_envs=2048, num_steps=10, seed=0):
    process_id = jax.process_index()
    local_devices = jax.local_devices()
    n_dev = len(local_devices)
    env = envs.get_environment(env_name)
    env = envs.training.wrap(env, episode_length=1000)

    key = jax.random.PRNGKey(seed)
    key, env_key, eval_key = jax.random.split(jax.random.fold_in(key, process_id), 3)
    env_keys = jax.random.split(env_key, num_envs)
    env_keys = jnp.reshape(env_keys, (n_dev, -1) + env_keys.shape[1:])
    env_state = jax.pmap(env.reset)(env_keys)

    ppo_network = networks.make_ppo_networks(env_state.obs.shape[-1], env.action_size)
    init_state = losses.init(ppo_network, jax.random.PRNGKey(1))
    training_state = jax.device_put_replicated(init_state, local_devices)  # finds: device-put-stackers-gone

    def epoch(state, env_state, key):
        (state, env_state, _), metrics = jax.lax.scan(
            losses.make_step(ppo_network, env), (state, env_state, key), (), length=num_steps)
        metrics = jax.tree_util.tree_map(jnp.mean, metrics)
        return state, env_state, jax.lax.pmean(metrics, "i")

    epoch = jax.pmap(epoch, axis_name="i")
    for it in range(20):
        t = time.time()
        key, epoch_key = jax.random.split(key)
        epoch_keys = jax.random.split(epoch_key, n_dev)
        training_state, env_state, metrics = epoch(training_state, env_state, epoch_keys)  # finds: calls-run-python
        metrics = jax.tree_util.tree_map(jnp.mean, metrics)
        jax.tree_util.tree_map(lambda x: x.block_until_ready(), metrics)
        print(it, time.time() - t, float(metrics["policy_loss"]))
    params = jax.tree_util.tree_map(lambda x: x[0], training_state.params)  # finds: index-replicates-the-row
    normalizer = training_state.normalizer_params
    return params, normalizer.mean[0]  # finds: index-replicates-the-row
