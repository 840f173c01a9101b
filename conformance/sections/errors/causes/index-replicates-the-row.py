import jax
import numpy as np

x = jax.pmap(lambda x: 2 * x, "i")(np.arange(jax.local_device_count()))
for i in (0, 1):
    print(x[i], "on", len(x[i].devices()), "devices")
even = np.arange(len(x)) % 2 == 0
for name, index in {"1": 1, "[0, 3]": np.array([0, 3]), "even": even}.items():
    program = jax.jit(lambda x, index=index: x[index]).lower(x).compile().as_text()
    print(f"x[{name}]", "all-reduce(" in program)
