import functools
import flax
import jax
import jax.numpy as jnp
import numpy as np
from jax import config as jax_config


@flax.struct.dataclass
class Stats:
  loss: float
  psnr: float
  weight_l2: float


def train_step(model, rng, state, batch, lr):
  rng, key_0, key_1 = jax.random.split(rng, 3)
  def loss_fn(variables):
    rgb = model.apply(variables, key_0, key_1, batch['rays'])
    loss = ((rgb - batch['pixels'][..., :3]) ** 2).mean()
    return loss, Stats(loss=loss, psnr=-10. * jnp.log10(loss), weight_l2=0.)
  (_, stats), grad = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
  grad = jax.lax.pmean(grad, axis_name='batch')
  stats = jax.lax.pmean(stats, axis_name='batch')
  return state.apply_gradients(grads=grad), stats, rng


def main(model, state, pdataset, learning_rate_fn, rng, max_steps, print_every):
  train_pstep = jax.pmap(functools.partial(train_step, model), axis_name='batch', in_axes=(0, 0, 0, None), donate_argnums=(2,))
  keys = jax.random.split(rng, jax.local_device_count())
  stats_trace = []
  reset_timer = True
  for step, batch in zip(range(1, max_steps + 1), pdataset):
    lr = learning_rate_fn(step)
    state, stats, keys = train_pstep(keys, state, batch, lr)  # finds: own-output-traced-again
    if jax.process_index() == 0:
      stats_trace.append(stats)
    if step % print_every == 0:
      print(f'{step}: {stats.loss[0]:0.4f}, psnr {np.mean([s.psnr[0] for s in stats_trace]):0.2f}')  # finds: index-replicates-the-row
      stats_trace = []
  return state
