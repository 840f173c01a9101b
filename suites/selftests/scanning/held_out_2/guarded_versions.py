"""A library that supports many versions of JAX."""
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from packaging.version import Version

JAX_VERSION = Version(jax.__version__)

try:
    from jax.sharding import PmapSharding
except ImportError:
    PmapSharding = None

if JAX_VERSION < Version("0.10"):
    jax.config.update("jax_pmap_shmap_merge", False)


def put_stacked(shards, devices):
    if hasattr(jax, "device_put_sharded"):
        return jax.device_put_sharded(shards, devices)
    mesh = Mesh(np.array(devices), ("i",))
    return jax.device_put(np.stack(shards), NamedSharding(mesh, P("i")))


def put_replicated(x, devices):
    try:
        return jax.device_put_replicated(x, devices)
    except AttributeError:
        mesh = Mesh(np.array(devices), ("i",))
        return jax.device_put(np.stack([x] * len(devices)), NamedSharding(mesh, P("i")))


def kind(x):
    if PmapSharding is not None and isinstance(x.sharding, PmapSharding):
        return "pmap"
    return type(x.sharding).__name__


def fix(x):
    return np.fix(x)
