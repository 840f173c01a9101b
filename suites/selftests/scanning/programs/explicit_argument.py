# from new_pmap@0.9.0 to new_pmap@0.12.0.1
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",))
step = jax.pmap(lambda x: x * 2, axis_name="batch")

def main(x):
    x = jax.device_put(x, NamedSharding(mesh, P("data")))
    return step(x)  # finds: explicit-axis-not-in-the-map
