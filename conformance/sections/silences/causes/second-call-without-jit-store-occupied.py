import jax
import numpy as np

rows = np.arange(8, dtype=np.float32)
doubled = jax.pmap(lambda x: 2 * x)
with jax.disable_jit():
    for _ in range(2):
        try:
            print(doubled(rows))
        except Exception as error:
            print(type(error).__name__, error)
