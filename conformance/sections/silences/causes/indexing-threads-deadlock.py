import os
import threading
import time

import jax
import numpy as np

output = jax.pmap(lambda x: x * 2, "i")(np.ones((jax.device_count(), 100_000), np.float32))
reads = 0


def read_two(first):
    global reads
    for k in (first, first + 1):
        np.asarray(output[k % jax.device_count()])
        reads += 1


for _ in range(20):
    threads = [threading.Thread(target=read_two, args=(k,), daemon=True) for k in range(64)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        before = reads, time.process_time()
        for _ in range(500):
            time.sleep(0.01)
            if not any(thread.is_alive() for thread in threads):
                break
        else:
            if reads == before[0] and time.process_time() - before[1] < 0.5:
                print("no read for five seconds", flush=True)
                os._exit(0)
print("all read")
