import jax
import jax.numpy as jnp
import numpy as np

rows, kernel = np.ones((1, 1024, 64), np.float32), np.ones((1, 64, 64), np.float32)
print(jax.jit(lambda x, k: jnp.einsum("bi,oi->o", x[0], k[0]))(rows, kernel)[0], flush=True)
print(jax.jit(lambda x, k: (x[0] @ k[0].T).sum(0))(rows, kernel)[0])
