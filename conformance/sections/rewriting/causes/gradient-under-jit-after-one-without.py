import jax
import numpy as np

rows = np.arange(8, dtype=np.float32)
squared = jax.pmap(lambda x: x**2)
gradient = jax.grad(lambda x: squared(x).sum())
print(gradient(rows).tolist())
print(jax.jit(gradient)(rows).tolist())
