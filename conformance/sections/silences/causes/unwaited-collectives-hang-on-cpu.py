import os
import threading
import time

import jax
import numpy as np

step = jax.pmap(lambda x: (2 * x + jax.lax.psum(x, "i")) % 9973, axis_name="i")
rows = step(np.ones((jax.device_count(), 200_000), np.float32))
rows.block_until_ready()


def loop():
    result = rows
    for _ in range(128):
        result = step(result)
    np.asarray(result)


thread = threading.Thread(target=loop, daemon=True)
thread.start()
while thread.is_alive():
    before = time.process_time()
    for _ in range(300):
        time.sleep(0.01)
        if not thread.is_alive():
            break
    else:
        if time.process_time() - before < 0.2:
            print("no progress for three seconds", flush=True)
            os._exit(0)
print("128 calls", flush=True)
os._exit(0)
