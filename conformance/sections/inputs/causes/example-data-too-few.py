import jax
import numpy as np

start = jax.process_index() * 32
print(np.arange(start, start + 32).reshape(32, 10))  # the guide's line
