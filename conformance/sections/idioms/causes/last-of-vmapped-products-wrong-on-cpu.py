import jax
import numpy as np

matrix = np.eye(3, dtype=np.float32)
points = np.arange(32769, dtype=np.float32)[:, None] % np.array([2, 3, 4], np.float32)
squares = jax.jit(jax.vmap(lambda point: ((matrix @ point) ** 2).sum()))(points)
sums = jax.jit(jax.vmap(lambda point: (matrix @ point).sum()))(points)
print("squares", (points[-1] ** 2).sum(), squares[-1])
print("sums", points[-1].sum(), sums[-1])
