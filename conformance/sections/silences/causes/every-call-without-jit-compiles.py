import jax
import numpy as np

compiled = []


def noted(event, *_, **__):
    if event == "/jax/core/compile/backend_compile_duration":
        compiled.append(event)


jax.monitoring.register_event_duration_secs_listener(noted)
mapped = jax.pmap(lambda x: jax.lax.pmean(2 * x, "i") + x, "i")
rows = np.ones((jax.local_device_count(), 3), np.float32)
for on in (True, False):
    with jax.disable_jit(on):
        for call in ("first call", "second call", "third call"):
            compiled.clear()
            jax.block_until_ready(mapped(rows))
            print("without" if on else "with", "jit,", call, "many" if len(compiled) > 2 else "few")
