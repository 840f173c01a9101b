import jax
import jax.numpy as jnp
import numpy as np

rows = np.arange(8, dtype=np.float32)
scaled = jax.pmap(lambda weight, row: weight * row, in_axes=(None, 0))
for constant in (jnp.asarray(rows), rows):
    print(jax.jit(lambda weight, x=constant: scaled(weight, x))(np.float32(2))[3])
