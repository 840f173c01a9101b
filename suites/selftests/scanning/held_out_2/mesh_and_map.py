"""Half of the code is already on meshes, half still on pmap."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh(axis_shapes=(jax.device_count(),), axis_names=("data",))  # finds: make-mesh-sizes-renamed
old_mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
step = jax.pmap(lambda w, x: w + x.mean(), axis_name="batch")


def load(x):
    return jax.device_put(x, NamedSharding(mesh, P("data")))


def load_auto(x):
    return jax.device_put(x, NamedSharding(old_mesh, P("data")))


def run(w, x):
    x = load(x)
    return step(w, x)  # finds: explicit-axis-not-in-the-map


def run_auto(w, x):
    return step(w, load_auto(x))


@jax.jit
def on_mesh(x):
    return jnp.sin(x) * 2


def main():
    n = jax.device_count()
    w = np.zeros(n, np.float32)
    x = np.ones((n, 4), np.float32)
    print(run_auto(w, x), run(w, x), on_mesh(load(x)))
