"""Entry point with absl flags, as found beside many research code bases."""
from absl import app
from absl import flags
from absl import logging

import jax
import jax.numpy as jnp
import numpy as np

FLAGS = flags.FLAGS
flags.DEFINE_integer("batch_size", 256, "Global batch size.")
flags.DEFINE_float("lr", 0.1, "Learning rate.")
flags.DEFINE_integer("steps", 100, "Number of steps.")
flags.DEFINE_bool("legacy", True, "Use the old pmap.")


def loss_fn(w, x, y):
  return jnp.mean((x @ w - y) ** 2)


def make_update(lr):
  def update(w, x, y):
    loss, g = jax.value_and_grad(loss_fn)(w, x, y)
    g = jax.lax.pmean(g, axis_name="b")
    return w - lr * g, jax.lax.pmean(loss, axis_name="b")
  return jax.pmap(update, axis_name="b")


def synthetic(n, rng):
  d = jax.local_device_count()
  x = rng.standard_normal((d, n // d, 8)).astype(np.float32)
  return x, x.sum(-1, keepdims=True)


def main(argv):
  del argv
  if FLAGS.legacy:
    jax.config.update("jax_pmap_shmap_merge", False)  # finds: merge-option-gone
  logging.info("devices: %s", jax.devices())
  rng = np.random.default_rng(0)
  update = make_update(FLAGS.lr)
  w = np.zeros((jax.local_device_count(), 8, 1), np.float32)
  for step in range(FLAGS.steps):
    w, loss = update(w, *synthetic(FLAGS.batch_size, rng))  # finds: own-output-traced-again
    if step % 10 == 0:
      logging.info("step %d loss %f", step, loss[0])  # finds: index-replicates-the-row
  np.save("w.npy", np.asarray(w[0]))  # finds: index-replicates-the-row


if __name__ == "__main__":
  app.run(main)
