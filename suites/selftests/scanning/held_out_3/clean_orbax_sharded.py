"""Saves and restores sharded arrays; no map."""
import pathlib

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def abstract(tree, sharding):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree)


def roundtrip(folder, tree):
    mesh = Mesh(np.array(jax.devices()), ("d",))
    sharding = NamedSharding(mesh, P("d"))
    tree = jax.device_put(tree, sharding)
    path = pathlib.Path(folder).absolute() / "0"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, tree)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(path, abstract(tree, sharding))
    for name, value in restored.items():
        print(name, value.sharding.spec, value.addressable_shards[0].data[0])
    return {name: value[0] for name, value in jax.device_get(restored).items()}
