import functools
import flax.jax_utils
import jax
import jax.numpy as jnp
import numpy as np
import optax


def main(model, tx, train_iter, config, write):
  @functools.partial(jax.pmap, axis_name='batch')
  def evaluate(params, images, labels, mask):
    logits, _ = model.apply({'params': params}, images)
    top1 = jnp.argmax(logits, axis=1)
    ncorrect = jax.lax.psum(mask * (top1 == labels), axis_name='batch')
    return ncorrect, jax.lax.psum(mask, axis_name='batch')

  @functools.partial(jax.pmap, axis_name='batch', donate_argnums=(0, 1))
  def update_fn(params, opt, rng, images, labels):
    measurements = {}
    rng, rng_model = jax.random.split(rng, 2)
    rng_model_local = jax.random.fold_in(rng_model, jax.lax.axis_index('batch'))
    def loss_fn(params, images, labels):
      logits, _ = model.apply({'params': params}, images, rngs={'dropout': rng_model_local})
      return optax.sigmoid_binary_cross_entropy(logits, labels).mean()
    l, grads = jax.value_and_grad(loss_fn)(params, images, labels)
    l, grads = jax.lax.pmean((l, grads), axis_name='batch')
    updates, opt = tx.update(grads, opt, params)
    params = optax.apply_updates(params, updates)
    return params, opt, rng, l, measurements

  rng = jax.random.PRNGKey(config.get('seed', 0))
  params_cpu = jax.jit(model.init, backend='cpu')(rng, jnp.zeros((1, 224, 224, 3)))['params']
  opt_cpu = jax.jit(tx.init, backend='cpu')(params_cpu)
  params_repl = flax.jax_utils.replicate(params_cpu)  # finds: device-put-stackers-gone
  opt_repl = flax.jax_utils.replicate(opt_cpu)  # finds: device-put-stackers-gone
  rngs_loop = flax.jax_utils.replicate(rng)  # finds: device-put-stackers-gone
  for step, batch in enumerate(train_iter, start=1):
    params_repl, opt_repl, rngs_loop, loss_value, measurements = update_fn(  # finds: own-output-traced-again
        params_repl, opt_repl, rngs_loop, batch['image'], batch['labels'])
    if step % config.log_training_steps == 0:
      write('training_loss', loss_value[0])  # finds: index-replicates-the-row
      for name, value in measurements.items():
        write(name, value[0])  # finds: index-replicates-the-row
    if step % config.ckpt_steps == 0:
      params_cpu = jax.tree.map(lambda x: np.array(x[0]), params_repl)  # finds: index-replicates-the-row
      opt_cpu = jax.tree.map(lambda x: np.array(x[0]), opt_repl)  # finds: index-replicates-the-row
      write('checkpoint', (params_cpu, opt_cpu))
    if step % config.eval_steps == 0:
      ncorrect = 0
      nseen = 0
      for b in config.val_iter:
        batch_ncorrect, batch_n = evaluate(params_repl, b['image'], b['labels'], b['mask'])
        ncorrect += np.sum(np.array(batch_ncorrect)[0])
        nseen += np.sum(np.array(batch_n[0]))  # finds: index-replicates-the-row
