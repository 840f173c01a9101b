import jax
import jax.numpy as jnp
from flax.jax_utils import replicate, unreplicate
from flax.training.train_state import TrainState


def main(model, tx, train_ds, epochs):
  rng = jax.random.PRNGKey(0)
  rng, init_rng = jax.random.split(rng)
  params = model.init(init_rng, jnp.ones((1, 784)), rng)['params']
  state = replicate(TrainState.create(apply_fn=model.apply, params=params, tx=tx))  # finds: device-put-stackers-gone
  rngs = jax.random.split(rng, jax.local_device_count())

  @jax.pmap
  def sample(state, z):
    return state.apply_fn({'params': state.params}, z, method='generate')

  def step(state, batch, key):
    def loss(p):
      recon, mean, logvar = state.apply_fn({'params': p}, batch, key)
      return jnp.mean((recon - batch) ** 2) - 0.5 * jnp.mean(1 + logvar - mean ** 2 - jnp.exp(logvar))
    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=jax.lax.pmean(grads, 'b')), jax.lax.pmean(value, 'b'), jax.random.split(key)[0]

  step = jax.pmap(step, 'b', donate_argnums=(0,))
  for epoch in range(epochs):
    for batch in train_ds:
      state, value, rngs = step(state, batch, rngs)  # finds: own-output-traced-again
    print(f'epoch {epoch}: {unreplicate(value):.4f}')  # finds: unreplicated-onto-one-device
    images = sample(state, jnp.zeros((jax.local_device_count(), 8, 20)))
    yield images[0, :4]  # finds: index-replicates-the-row
