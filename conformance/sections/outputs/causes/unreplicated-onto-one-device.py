import jax
import numpy as np

x = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")(np.ones((8, 3)))
for first in (x[0], x.addressable_shards[0].data.squeeze(0)):  # the second as flax 0.12.6 has it
    print(first.tolist(), "on", len(first.devices()), "devices")
