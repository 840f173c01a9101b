# from shard_map@0.8.3 to shard_map@0.12.0.1
import jax
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("i",))  # finds: make-mesh-axes-explicit
f = jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("i"), out_specs=P("i"))  # finds: explicit-axes-refuse-other-specs
