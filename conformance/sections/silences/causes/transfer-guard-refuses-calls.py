import jax
import numpy as np

double = jax.pmap(lambda x: x * 2, "i")
rows = np.ones((jax.local_device_count(), 3), np.float32)
out = double(rows)
for use in (
    lambda: double(rows),
    lambda: out[0],
    lambda: out.addressable_shards[0].data,
):
    try:
        with jax.transfer_guard("disallow"):
            print(use().shape)
    except Exception as error:
        print(str(error).partition(": ")[2].partition(":")[0])
