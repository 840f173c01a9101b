import functools
import jax
import jax.numpy as jnp


def auto_scope_method(method):
  @functools.wraps(method)
  def wrapped(instance, *args, **kwargs):
    with jax.named_scope(method.__name__):
      return method(instance, *args, **kwargs)
  return wrapped


def staged(method, static_argnums=(), donate_argnums=()):
  """A method that is mapped if its instance says so."""
  pmapped = jax.pmap(method, static_broadcasted_argnums=(0, *static_argnums), donate_argnums=donate_argnums, axis_name='i')

  @functools.wraps(method)
  def decorated(instance, *args):
    if instance.multi_device:
      return pmapped(instance, *args)  # finds: own-output-traced-again
    return method(instance, *args)
  return decorated


class Estimator:
  multi_device = True

  @auto_scope_method
  def rescale(self, state, factor):
    return state * factor

  @functools.partial(staged, donate_argnums=(1,))
  def update(self, state, batch):
    return state + jnp.mean(batch)

  def run(self, state, batches):
    for batch in batches:
      state = self.update(state, batch)
    return state
