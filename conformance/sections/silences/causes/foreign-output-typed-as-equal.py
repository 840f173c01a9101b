import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

jnp.linalg.cholesky(jnp.eye(1))  # registers LAPACK's functions
mesh = Mesh(np.array(jax.devices()), ("i",))


def root(x):  # of a 1 x 1 matrix: LAPACK's Cholesky factor
    types = jax.ShapeDtypeStruct((1, 1), np.float32), jax.ShapeDtypeStruct((), np.int32)
    call = jax.ffi.ffi_call("lapack_spotrf_ffi", types, input_output_aliases={0: 0})
    return call(x, uplo=np.uint8(ord("L")))[0]


# The roots differ by device, so that out_specs=P() is wrong, and must be refused.
mapped = jax.shard_map(root, mesh=mesh, in_specs=P("i"), out_specs=P())
print(jax.jit(mapped)(np.arange(1, 9, dtype=np.float32)[:, None] ** 2))
