import abc
import jax
import jax.numpy as jnp


class BaseWorker(abc.ABC):
  axis = 'devices'

  def __init__(self, config):
    self.config = config
    self.build()

  def build(self):
    self.pstep = jax.pmap(self.step_fn, axis_name=self.axis, donate_argnums=(0,))

  @abc.abstractmethod
  def step_fn(self, state, batch):
    ...

  def run(self, state, batches):
    history = []
    for batch in batches:
      state, aux = self.pstep(state, batch)  # finds: own-output-traced-again
      history.append(self.summarize(aux))
    return state, history

  def summarize(self, aux):
    return {k: float(v[0]) for k, v in aux.items()}  # finds: index-replicates-the-row


class Worker(BaseWorker):
  def step_fn(self, state, batch):
    return state, {'loss': jnp.mean(batch), 'norm': jnp.linalg.norm(batch)}
