import flax.linen as nn
import jax
import numpy as np

init = nn.with_partitioning(nn.initializers.ones, (None, "model"))
layer = nn.Dense(4, kernel_init=init)
rows = np.ones((jax.local_device_count(), 2, 3), np.float32)
boxed = layer.init(jax.random.key(0), rows[0])
plain = nn.unbox(boxed)


def constrained(x):
    with nn.logical_axis_rules([("batch", "data"), ("embed", None)]):
        return nn.with_logical_constraint(x, ("batch", "embed"))


BODIES = {
    "applied": lambda x: layer.apply(boxed, x),
    "initialised": lambda x: layer.init_with_output(jax.random.key(0), x)[0],
    "constrained": constrained,
    "unboxed": lambda x: layer.apply(plain, x),
}

for name, body in BODIES.items():
    try:
        print(name, np.asarray(jax.pmap(body, "i")(rows))[0, 0])
    except Exception as error:
        print(name, type(error).__name__)
