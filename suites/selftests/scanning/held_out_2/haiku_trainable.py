"""Haiku with state, on several devices, with a checkpoint every so often."""
import pickle

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax


def forward(images, is_training):
  net = hk.nets.MLP([128, 10])
  return net(hk.Flatten()(images))


net = hk.without_apply_rng(hk.transform_with_state(forward))
opt = optax.adam(1e-3)


def loss_fn(params, state, images, labels):
  logits, state = net.apply(params, state, images, True)
  return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), state


def train_step(params, state, opt_state, images, labels):
  (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, images, labels)
  grads, state = jax.lax.pmean((grads, state), "d")
  updates, opt_state = opt.update(grads, opt_state)
  return optax.apply_updates(params, updates), state, opt_state, loss


def train(dataset, workdir):
  n = jax.local_device_count()
  rng = jax.random.PRNGKey(42)
  images, _ = next(dataset)
  params, state = net.init(rng, images, True)
  opt_state = opt.init(params)
  params, state, opt_state = jax.device_put_replicated((params, state, opt_state), jax.local_devices())  # finds: device-put-stackers-gone
  step = jax.pmap(train_step, axis_name="d", donate_argnums=(0, 1, 2))
  for i, (images, labels) in enumerate(dataset):
    images = images.reshape(n, -1, *images.shape[1:])
    labels = labels.reshape(n, -1)
    params, state, opt_state, loss = step(params, state, opt_state, images, labels)  # finds: own-output-traced-again
    if i % 1000 == 0:
      with open(f"{workdir}/{i}.pkl", "wb") as f:
        pickle.dump(jax.tree_util.tree_map(lambda x: np.asarray(x[0]), params), f)  # finds: index-replicates-the-row
      print(np.mean(loss), images[0].shape)
  return jax.device_get(params)
