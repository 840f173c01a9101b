import jax
import numpy as np

rows = np.ones((8, 3), np.float32)
for arguments in (
    (rows, rows[:4]),
    (rows[:4], rows),
    (rows, 1.0),
    (np.float32(1), rows),
    (rows, "text"),
):
    try:
        print(jax.pmap(lambda x, y: x, "i")(*arguments).shape)
    except Exception as error:
        print(type(error).__name__, " ".join(str(error).split())[:60])
try:
    print(jax.pmap(lambda x: (x, x), "i", out_axes=(0,))(rows))
except Exception as error:
    print("pmap out_axes" in str(error))
