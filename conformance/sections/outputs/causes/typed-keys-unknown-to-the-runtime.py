import jax
import numpy as np

seeds = np.arange(8)
try:
    print(jax.pmap(jax.random.key)(seeds).shape)
except Exception as error:
    print(type(error).__name__)
