import jax
import numpy as np

x = jax.pmap(lambda x: 2 * x)(np.arange(jax.local_device_count()))
for i in (0, 1):
    print(x[i], "on", len(x[i].devices()), "devices")
print("all-reduce(" in jax.jit(lambda x: x[1]).lower(x).compile().as_text())
