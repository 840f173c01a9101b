# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",), axis_types=(AxisType.Explicit,))
step = jax.pmap(lambda x: x * 2, axis_name="batch")

def main(x):
    return step(jax.device_put(x, NamedSharding(mesh, P("data"))))  # finds: explicit-axis-not-in-the-map
