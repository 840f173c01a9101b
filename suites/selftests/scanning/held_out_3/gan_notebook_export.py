# %% [markdown]
# # Exported from a notebook
# %%
import jax
import jax.numpy as jnp
import numpy as np
from jax import pmap

# %%
n = jax.local_device_count()
noise = np.random.default_rng(0).standard_normal((n, 16, 8)).astype(np.float32)
W = np.ones((n, 8, 8), np.float32)

# %%
generate = pmap(lambda w, z: jnp.tanh(z @ w))
update = pmap(lambda w, z: w - 0.01 * jax.lax.pmean(jnp.outer(z.mean(0), z.mean(0)), "n"), axis_name="n")

# %%
for epoch in range(10):
    W = update(W, noise)  # finds: own-output-traced-again

# %%
fake = generate(W, noise)
fake[0, 0]  # finds: index-replicates-the-row
# %%
fake.shape, noise[0].shape
# %%
plot = np.array(fake)
plot[0], plot[1:]
# %%
W[-1]  # finds: index-replicates-the-row
# %%
a, b = jnp.split(fake.reshape(-1, 8), 2)
