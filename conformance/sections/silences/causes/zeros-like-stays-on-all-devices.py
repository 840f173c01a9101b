import jax
import jax.numpy as jnp
import numpy as np

out = jax.pmap(lambda x: 2 * x, "i")(np.ones((8, 3), np.float32))
made = {
    "zeros_like": jnp.zeros_like(out),
    "full_like": jnp.full_like(out, 7),
    "jit of zeros_like": jax.jit(jnp.zeros_like)(out),
    "zeros": jnp.zeros(out.shape, out.dtype),
}
for name, x in made.items():
    print(name, len(x.devices()), "committed" if x.committed else "uncommitted")
