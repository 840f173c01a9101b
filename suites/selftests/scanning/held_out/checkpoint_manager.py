import orbax.checkpoint as ocp
import jax
import numpy as np
from flax import jax_utils


class Trainer:
  def __init__(self, directory, step_fn):
    self.manager = ocp.CheckpointManager(directory)
    self.p_step = jax.pmap(step_fn, 'batch', donate_argnums=0)

  def unreplicated(self, state):
    return jax.device_get(jax_utils.unreplicate(state))  # finds: unreplicated-onto-one-device

  def fit(self, state, data):
    state = jax_utils.replicate(state)  # finds: device-put-stackers-gone
    for i, batch in enumerate(data):
      state, _ = self.p_step(state, batch)  # finds: own-output-traced-again
      if i % 100 == 0:
        self.manager.save(i, args=ocp.args.StandardSave(self.unreplicated(state)))
    self.manager.wait_until_finished()
    return state
