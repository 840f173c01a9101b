# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax
import numpy as np

mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
