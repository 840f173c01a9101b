import argparse
import math
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import jax_utils
from flax.training import train_state
from flax.training.common_utils import shard


def main(unet, vae, tokenizer, train_dataloader, args):
  rng = jax.random.PRNGKey(args.seed)
  total_train_batch_size = args.train_batch_size * jax.local_device_count()
  state = train_state.TrainState.create(apply_fn=unet.__call__, params=unet.params, tx=optax.adamw(args.lr))
  train_rngs = jax.random.split(rng, jax.local_device_count())

  def train_step(state, text_encoder_params, batch, train_rng):
    dropout_rng, sample_rng, new_train_rng = jax.random.split(train_rng, 3)
    def compute_loss(params):
      pred = unet.apply({'params': params}, batch['pixel_values'], text_encoder_params, train=True)
      return ((batch['target'] - pred) ** 2).mean()
    loss, grad = jax.value_and_grad(compute_loss)(state.params)
    grad = jax.lax.pmean(grad, 'batch')
    return state.apply_gradients(grads=grad), jax.lax.pmean({'loss': loss}, axis_name='batch'), new_train_rng

  p_train_step = jax.pmap(train_step, 'batch', donate_argnums=(0,))
  state = jax_utils.replicate(state)  # finds: device-put-stackers-gone
  text_encoder_params = jax_utils.replicate(vae.params)  # finds: device-put-stackers-gone
  global_step = 0
  for epoch in range(args.num_train_epochs):
    train_metrics = []
    for batch in train_dataloader:
      batch = shard(batch)
      state, train_metric, train_rngs = p_train_step(state, text_encoder_params, batch, train_rngs)  # finds: own-output-traced-again
      train_metrics.append(train_metric)
      global_step += 1
      if global_step >= args.max_train_steps:
        break
    train_metric = jax_utils.unreplicate(train_metric)  # finds: unreplicated-onto-one-device
    print(f"Epoch {epoch} loss {train_metric['loss']}")
  if jax.process_index() == 0:
    params = jax.device_get(jax.tree_util.tree_map(lambda x: x[0], state.params))  # finds: index-replicates-the-row
    unet.save_pretrained(args.output_dir, params=params)
