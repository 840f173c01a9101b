"""Rendering of an image in chunks over all devices."""
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import random


def namedtuple_map(fn, tup):
  return type(tup)(*map(fn, tup))


def render_image(render_fn, rays, rng, normalize_disp, chunk=8192):
  height, width = rays[0].shape[:2]
  num_rays = height * width
  rays = namedtuple_map(lambda r: r.reshape((num_rays, -1)), rays)
  unused_rng, key_0, key_1 = jax.random.split(rng, 3)
  host_id = jax.process_index()
  results = []
  for i in range(0, num_rays, chunk):
    chunk_rays = namedtuple_map(lambda r: r[i:i + chunk], rays)
    rays_per_host = chunk_rays[0].shape[0] // jax.process_count()
    start, stop = host_id * rays_per_host, (host_id + 1) * rays_per_host
    chunk_rays = namedtuple_map(lambda r: r[start:stop].reshape((jax.local_device_count(), -1) + r.shape[1:]), chunk_rays)
    chunk_results = render_fn(key_0, key_1, chunk_rays)[-1]
    results.append([x[0] for x in chunk_results])
  rgb, disp, acc = [jnp.concatenate(r, axis=0) for r in zip(*results)]
  return rgb.reshape((height, width, -1)), disp, acc


def main(model, variables, dataset):
  def render_fn(variables, key_0, key_1, rays):
    return jax.lax.all_gather(model.apply(variables, key_0, key_1, rays, False), axis_name='batch')

  render_pfn = jax.pmap(render_fn, in_axes=(None, None, None, 0), donate_argnums=(3,), axis_name='batch')
  for batch in dataset:
    gathered = render_pfn(variables, random.PRNGKey(0), random.PRNGKey(1), batch['rays'])  # finds: calls-run-python
    image = gathered[0]  # finds: index-replicates-the-row
    np.save('image.npy', image)
