"""An inference pipeline with a jitted and a pmapped call."""
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np


class Pipeline:
  def __init__(self, unet, scheduler):
    self.unet = unet
    self.scheduler = scheduler

  def numpy_to_pil(self, images):
    return [im for im in (images * 255).round().astype('uint8')]

  def _generate(self, prompt_ids, params, rng, steps):
    latents = jax.random.normal(rng, (prompt_ids.shape[0], 64, 64, 4))
    def loop_body(step, args):
      return args * 0.5
    return jax.lax.fori_loop(0, steps, loop_body, latents)

  def __call__(self, prompt_ids, params, rng, num_inference_steps=50, jit=False):
    if jit:
      images = _p_generate(self, prompt_ids, params, rng, num_inference_steps)
    else:
      images = self._generate(prompt_ids, params, rng, num_inference_steps)
    if jit:
      images = images.reshape((images.shape[0] * images.shape[1],) + images.shape[2:])
    return np.asarray(images)


@partial(jax.pmap, in_axes=(None, 0, 0, 0, None), static_broadcasted_argnums=(0, 4))
def _p_generate(pipe, prompt_ids, params, rng, num_inference_steps):
  return pipe._generate(prompt_ids, params, rng, num_inference_steps)


def unshard(x: jnp.ndarray):
  num_devices, batch_size = x.shape[:2]
  return x.reshape(num_devices * batch_size, *x.shape[2:])
