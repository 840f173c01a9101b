import functools
import jax
import jax.numpy as jnp
import numpy as np
from flax.training import common_utils


def pad_examples(x, desired_batch_size):
  batch_pad = desired_batch_size - x.shape[0]
  return np.concatenate([x, np.tile(x[-1], (batch_pad, 1))], axis=0)


def tohost(x):
  """Collects batches from all devices to host and flattens batch dimensions."""
  n_device, n_batch, *remaining_dims = x.shape
  return np.array(x).reshape((n_device * n_batch,) + tuple(remaining_dims))


def predict_step(inputs, params, config, max_decode_len):
  return jnp.argmax(inputs @ params, -1)[:, :max_decode_len]


def translate_and_calculate_bleu(ds, params, config, decode):
  p_pred_step = jax.pmap(functools.partial(predict_step, config=config), axis_name='batch', static_broadcasted_argnums=(2,))
  n_devices = jax.local_device_count()
  sources, predictions = [], []
  for batch in ds:
    cur = batch['inputs'].shape[0]
    if cur % n_devices:
      padded = int(np.ceil(cur / n_devices) * n_devices)
      batch = jax.tree_util.tree_map(lambda x: pad_examples(x, padded), batch)
    batch = common_utils.shard(batch)
    predicted = p_pred_step(batch['inputs'], params, config.max_predict_length)  # finds: calls-run-python
    predicted = tohost(predicted)
    for i, s in enumerate(predicted[:cur]):
      predictions.append(decode(s))
  return sources, predictions
