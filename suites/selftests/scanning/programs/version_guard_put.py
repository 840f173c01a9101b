import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

JAX_VERSION = tuple(int(p) for p in jax.__version__.split(".")[:2])


def replicate(tree):
    if JAX_VERSION < (0, 8):
        return jax.device_put_replicated(tree, jax.local_devices())
    mesh = Mesh(np.array(jax.local_devices()), ("r",))
    rows = NamedSharding(mesh, P("r"))
    return jax.tree.map(lambda v: jax.device_put(np.stack([v] * len(mesh.devices)), rows), tree)


def shard(shards):
    if hasattr(jax, "device_put_sharded"):
        return jax.device_put_sharded(shards, jax.local_devices())
    mesh = Mesh(np.array(jax.local_devices()), ("r",))
    return jax.device_put(np.stack(shards), NamedSharding(mesh, P("r")))


if JAX_VERSION >= (0, 8) and JAX_VERSION < (0, 10):
    jax.config.update("jax_pmap_shmap_merge", False)


def first(tree):
    return jax.tree.map(lambda x: x.addressable_shards[0].data.squeeze(0), tree)


step = jax.pmap(lambda p, b: p + jax.lax.pmean(b, "i"), axis_name="i")

if __name__ == "__main__":
    params = replicate({"w": np.ones(3)})
    batch = shard([np.ones(3)] * jax.local_device_count())
    print(first(step(params["w"], batch)))
