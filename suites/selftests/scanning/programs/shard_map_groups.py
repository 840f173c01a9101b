# from shard_map@0.8.3 to shard_map@0.12.0.1
import jax
from jax.sharding import PartitionSpec as P

def body(x):
    return jax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]])  # finds: check-vma-takes-no-groups

def make(mesh):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
