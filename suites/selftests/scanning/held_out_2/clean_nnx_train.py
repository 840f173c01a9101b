"""flax.nnx on one mesh with jit."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(4, 32, rngs=rngs)
        self.b = nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    optimizer.update(model, grads)
    return loss


def main(loader):
    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharding = NamedSharding(mesh, P("data"))
    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    losses = []
    for x, y in loader:
        x, y = jax.device_put((x, y), sharding)
        losses.append(train_step(model, optimizer, x, y))
    losses = np.asarray(jnp.stack(losses))
    print(losses[0], losses[-10:].mean())
    for value in losses:
        print(value)
