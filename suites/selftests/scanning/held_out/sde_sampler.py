import functools
import jax
import jax.numpy as jnp
import jax.random as random
import numpy as np


def get_pc_sampler(sde, shape, predictor, corrector, inverse_scaler, denoise=True):
  def pc_sampler(rng, state):
    rng, step_rng = random.split(rng)
    x = sde.prior_sampling(step_rng, shape)
    timesteps = jnp.linspace(sde.T, 1e-3, sde.N)

    def loop_body(i, val):
      rng, x, x_mean = val
      rng, step_rng = random.split(rng)
      x, x_mean = corrector(step_rng, state, x, timesteps[i])
      x, x_mean = predictor(step_rng, state, x, timesteps[i])
      return rng, x, x_mean

    _, x, x_mean = jax.lax.fori_loop(0, sde.N, loop_body, (rng, x, x))
    return inverse_scaler(x_mean if denoise else x), sde.N

  return jax.pmap(pc_sampler, axis_name='batch')


def evaluate(config, sde, pstate, predictor, corrector, rng):
  sampling_fn = get_pc_sampler(sde, (8, 32, 32, 3), predictor, corrector, lambda x: (x + 1) / 2)
  rng, *sample_rng = random.split(rng, jax.local_device_count() + 1)
  sample_rng = jnp.asarray(sample_rng)
  samples, n = sampling_fn(sample_rng, pstate)
  samples = np.clip(samples * 255., 0, 255).astype(np.uint8)
  samples = samples.reshape((-1, 32, 32, 3))
  print('function evaluations', n[0])  # finds: index-replicates-the-row
  return samples
