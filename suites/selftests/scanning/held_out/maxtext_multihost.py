# from new_pmap@0.9.0 to new_pmap@0.12.0.1
"""Set-up of a program that runs on many hosts with jit and a global mesh."""
import os
import jax
import numpy as np
from jax.experimental import mesh_utils, multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def create_mesh(config):
  devices = jax.devices()
  parallelism = [config.dcn_data, config.ici_fsdp, config.ici_tensor]
  mesh = mesh_utils.create_device_mesh(parallelism, devices)
  return Mesh(mesh, config.mesh_axes)


def global_batch(global_shape, local, mesh):
  sharding = NamedSharding(mesh, P('data'))
  per_process = np.split(local, jax.local_device_count(), axis=0)
  buffers = jax.device_put(per_process, jax.local_devices())
  return jax.make_array_from_single_device_arrays(global_shape, sharding, buffers)


def save(state, manager, step):
  if jax.process_index() == 0:
    os.makedirs(manager.directory, exist_ok=True)
  multihost_utils.sync_global_devices('save')
  manager.save(step, state)
  return jax.process_index() == 0
