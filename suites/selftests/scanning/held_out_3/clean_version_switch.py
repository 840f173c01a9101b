"""Chooses pmap's successor by feature."""
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

HAS_STACKERS = hasattr(jax, "device_put_replicated")


def replicate(tree, devices=None):
    devices = devices or jax.local_devices()
    if HAS_STACKERS:
        return jax.device_put_replicated(tree, devices)
    sharding = NamedSharding(Mesh(np.array(devices), ("i",)), P("i"))
    return jax.tree.map(lambda x: jax.device_put(np.stack([x] * len(devices)), sharding), tree)


def set_legacy():
    if jax.__version_info__ >= (0, 10):
        return False
    jax.config.update("jax_pmap_shmap_merge", False)
    return True


def main(tree):
    legacy = set_legacy()
    tree = replicate(tree)
    return legacy, jax.device_get(tree)
