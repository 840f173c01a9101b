"""Utilities shared by trainers."""
import functools
import flax
import flax.jax_utils as flax_utils
import jax
import jax.numpy as jnp
import numpy as np
import einops


def pad_shard_unpad(wrapped, static_argnums=(0,), static_argnames=()):
  """Pads, shards and unpads around a mapped function."""
  def pad_shard_unpad_wrapper(*args, min_device_batch=None, **kw):
    d = jax.local_device_count()
    batch_sizes = {t.shape[0] for i, a in enumerate(args) if i not in static_argnums for t in jax.tree_util.tree_leaves(a)}
    assert len(batch_sizes) == 1
    b = batch_sizes.pop()

    def pad(x):
      _, *shape = x.shape
      db, rest = divmod(b, d)
      if rest:
        x = np.concatenate([x, np.zeros((d - rest, *shape), x.dtype)], axis=0)
        db += 1
      return x.reshape(d, db, *shape)

    def maybe_pad(tree, actually_pad=True):
      return jax.tree_util.tree_map(pad, tree) if actually_pad else tree

    args = [maybe_pad(a, i not in static_argnums) for i, a in enumerate(args)]
    out = wrapped(*args, **kw)

    def unpad(x):
      return einops.rearrange(jax.device_get(x), 'd b ... -> (d b) ...')[:b]
    return jax.tree_util.tree_map(unpad, out)

  return pad_shard_unpad_wrapper


def onehot(labels, num_classes):
  return jnp.asarray(labels[..., None] == jnp.arange(num_classes), jnp.float32)


def accumulate_gradient(loss_and_grad_fn, params, images, labels, accum_steps):
  if accum_steps and accum_steps > 1:
    step_size = images.shape[0] // accum_steps
    l, g = loss_and_grad_fn(params, images[:step_size], labels[:step_size])
    def acc(i, l_and_g):
      imgs = jax.lax.dynamic_slice(images, (i * step_size, 0, 0, 0), (step_size,) + images.shape[1:])
      li, gi = loss_and_grad_fn(params, imgs, labels)
      l, g = l_and_g
      return l + li, jax.tree_util.tree_map(lambda x, y: x + y, g, gi)
    l, g = jax.lax.fori_loop(1, accum_steps, acc, (l, g))
    return jax.tree_util.tree_map(lambda x: x / accum_steps, (l, g))
  return loss_and_grad_fn(params, images, labels)
