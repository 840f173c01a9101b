import jax
import numpy as np

mapped = jax.pmap(lambda x: x * 2)
print(jax.vmap(lambda x: mapped(x), spmd_axis_name="v")(np.ones((2, 8))).shape)
