"""Actors in threads feed a learner on other devices of the same host."""
import queue
import threading
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np


def rollout(queue_, params_queue, device, envs):
  params = params_queue.get()
  while True:
    obs = envs.reset()
    action = jax.jit(lambda p, o: jnp.argmax(o @ p, -1), device=device)(params, obs)
    storage = jnp.stack([obs, action])
    sharded = jax.device_put_sharded(jnp.array_split(storage, len(jax.local_devices()) - 1), devices=jax.local_devices()[1:])  # finds: device-put-stackers-gone
    queue_.put(sharded)


def main(agent_state, update, envs):
  learner_devices = jax.local_devices()[1:]
  multi_device_update = jax.pmap(update, axis_name='local_devices', in_axes=(0, 0, None), devices=learner_devices)
  agent_state = jax.device_put_replicated(agent_state, learner_devices)  # finds: device-put-stackers-gone
  q, params_queue = queue.Queue(1), queue.Queue(1)
  unreplicated_params = jax.tree_util.tree_map(lambda x: x[0], agent_state.params)  # finds: index-replicates-the-row
  params_queue.put(unreplicated_params)
  threading.Thread(target=rollout, args=(q, params_queue, jax.local_devices()[0], envs)).start()
  while True:
    sharded_storage = q.get()
    agent_state, loss, key = multi_device_update(agent_state, sharded_storage, 0.1)  # finds: own-output-traced-again
    params_queue.put(jax.tree_util.tree_map(lambda x: x[0], agent_state.params))  # finds: index-replicates-the-row
    print('loss', loss[0].item())  # finds: index-replicates-the-row
