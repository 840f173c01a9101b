import jax
import jax.numpy as jnp
import numpy as np

kept = {}


def body(x):
    kept["eval_shape"] = jax.eval_shape(jnp.sin, x)
    kept["typeof"] = jax.typeof(x)
    return x


jax.pmap(body, "i")(np.ones((jax.local_device_count(), 3), np.float32))
plain = {"eval_shape": jax.ShapeDtypeStruct((3,), np.float32), "typeof": jax.typeof(jnp.ones(3))}
for name, shape in kept.items():
    print(name, "equal" if shape == plain[name] else "not equal", end=", ")
    try:
        jax.jit(jnp.sin).lower(shape)
        print("lowered")
    except Exception as error:
        print(type(error).__name__)
