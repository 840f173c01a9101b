# from legacy_pmap@0.7.2 to new_pmap@0.12.0.1, unchanged
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

number = jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("x",))
rows, same = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
double = jax.jit(lambda x: x * 2)
normal = jax.jit(lambda x: jax.nn.softmax(x), out_shardings=rows)
copied = jax.jit(lambda x: x * 2, out_shardings=same)
doubled = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
total = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())


def fetched(local):
    x = jax.make_array_from_process_local_data(rows, local, (8,))
    a = np.asarray(double(x))  # finds: global-array-cannot-be-fetched
    b = double(x).item()  # finds: global-array-cannot-be-fetched
    c = jax.device_get(doubled(x))  # finds: global-array-cannot-be-fetched
    d = np.array(normal(x))  # finds: global-array-cannot-be-fetched
    return a, b, c, d


def replicated(local):
    x = jax.make_array_from_process_local_data(rows, local, (8,))
    own = np.asarray(double(x).addressable_shards[0].data)
    return np.asarray(copied(x)), np.asarray(total(x)), own


def of_one_process_alone(local):
    x = double(jax.make_array_from_process_local_data(rows, local, (8,)))
    if x.is_fully_addressable:
        return np.asarray(x)
    return np.asarray(x.addressable_data(0))
