import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
bodies = {
    "cond": lambda x: jax.lax.cond(x > 3, lambda y: y, lambda y: jnp.float32(0), x),
    "scan": lambda x: jax.lax.scan(lambda a, _: (jax.lax.psum(a, "i"), None), x, length=2)[0],
}
for name, body in bodies.items():
    mapped = jax.shard_map(
        lambda x, body=body: body(x[0])[None], mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    try:
        jax.jit(mapped)(np.arange(8, dtype=np.float32))
    except TypeError as error:
        advice = [line for line in str(error).splitlines() if line.startswith("This might be")]
        print(f"{name}: {advice}")
