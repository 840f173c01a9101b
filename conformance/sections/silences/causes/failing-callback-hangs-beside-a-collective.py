import os
import threading
import time

import jax
import numpy as np


def check(row):
    if row[0] == 0:
        raise ValueError("bad row")
    return np.asarray(row)


def body(x):
    checked = jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return jax.lax.psum(checked, "i")


def call():
    try:
        np.asarray(jax.pmap(body, "i")(np.arange(8, dtype=np.float32)[:, None]))
    except Exception as error:
        print(type(error).__name__, "bad row" in str(error), flush=True)


thread = threading.Thread(target=call, daemon=True)
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
os._exit(0)
