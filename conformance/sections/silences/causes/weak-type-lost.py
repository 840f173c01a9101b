import jax
import jax.numpy as jnp
import numpy as np

weak = jax.vmap(lambda x: 1.0)(jnp.arange(8))
half = np.ones(8, np.float16)
print(weak.weak_type, jax.pmap(lambda x: x)(weak).weak_type)
print(jax.pmap(lambda x, y: x + y)(half, weak).dtype)
