# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P


def meshes(shape, names):
  plain = jax.make_mesh(shape, names)  # finds: make-mesh-axes-explicit
  auto = jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(names))
  return plain, auto


class Partitioner:
  def __init__(self, data, model):
    self.mesh = jax.make_mesh((data, model), ('data', 'model'), devices=jax.devices())  # finds: make-mesh-axes-explicit
    self.batch = NamedSharding(self.mesh, P('data'))

  def put(self, tree):
    return jax.tree.map(lambda x: jax.device_put(x, self.batch), tree)
