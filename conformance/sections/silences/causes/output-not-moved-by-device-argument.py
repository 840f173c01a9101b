import jax
import jax.numpy as jnp
import numpy as np

out = jax.pmap(lambda x: 2 * x, "i")(np.ones((jax.local_device_count(), 3), np.float32))
device = jax.local_devices()[1]
one = jax.sharding.SingleDeviceSharding(device)
moves = {"asarray": lambda: jnp.asarray(out, device=device)}
moves["jit"] = lambda: jax.jit(jnp.sin, out_shardings=one)(out)
moves["device_put"] = lambda: jax.device_put(out, device)
for name, move in moves.items():
    try:
        print(name, [x.id for x in move().devices()])
    except ValueError as error:
        print(name, type(error).__name__)
