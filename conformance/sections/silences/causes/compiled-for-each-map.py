import jax
import jax.numpy as jnp
import numpy as np

compiled = []


def noted(event, *_, **__):
    if event == "/jax/core/compile/backend_compile_duration":
        compiled.append(event)


def compiled_for(function, outputs):
    count = 0
    for out in outputs:
        compiled.clear()
        jax.block_until_ready(function(out))
        count += bool(compiled)
    return count


jax.monitoring.register_event_duration_secs_listener(noted)
rows = np.ones((8, 3), np.float32)
for names in (["a", "b", "c"], ["k", "k", "k"]):
    jax.clear_caches()
    outputs = [jax.pmap(lambda x: 2 * x, name)(rows) for name in names]
    print(*names, "sum:", compiled_for(jnp.sum, outputs))
    print(*names, "x[0]:", compiled_for(lambda x: x[0], outputs))
    print(*names, "next pmap:", compiled_for(jax.pmap(lambda x: 3 * x, "i"), outputs))
