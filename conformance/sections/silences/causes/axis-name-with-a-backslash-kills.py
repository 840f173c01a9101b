import jax
import numpy as np

rows = np.ones((8, 3), np.float32)
for name in ("data/job", "data\\job"):
    try:
        print(jax.pmap(lambda x, name=name: jax.lax.psum(x, name), name)(rows)[0], flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).split("error: ")[-1][:50])
