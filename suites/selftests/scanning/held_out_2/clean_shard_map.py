"""Already on jax.shard_map; the word pmap is only in this sentence and in a comment."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("batch",))


# was: @functools.partial(jax.pmap, axis_name="batch")
@functools.partial(jax.jit, donate_argnums=0)
@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("batch")), out_specs=(P(), P()))
def step(w, x):
    loss, g = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * jax.lax.pmean(g, "batch"), jax.lax.pmean(loss, "batch")


def main(loader):
    w = jax.device_put(np.zeros((8,), np.float32), NamedSharding(mesh, P()))
    history = []
    for x in loader:
        x = jax.device_put(x, NamedSharding(mesh, P("batch")))
        w, loss = step(w, x)
        history.append(float(loss))
    message = "x[0] of a pmap output: see jax.device_put_sharded in the old docs"
    print(message, history[0], history[-1])
    return w[0]
