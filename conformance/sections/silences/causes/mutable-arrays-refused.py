import jax
import jax.numpy as jnp
import numpy as np

rows = np.ones((jax.local_device_count(), 3), np.float32)
new_ref = getattr(jax, "new_ref", None) or jax._src.core.mutable_array
factor = new_ref(jnp.float32(2))


def own(x):
    ref = new_ref(x)
    ref[...] = ref[...] * 2
    return ref[...]


for name, body in (("its own", own), ("closed over", lambda x: x * factor[...])):
    try:
        print(name, np.asarray(jax.pmap(body, "i")(rows))[0])
    except Exception as error:
        print(name, type(error).__name__)
