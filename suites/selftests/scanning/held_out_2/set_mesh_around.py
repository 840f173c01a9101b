"""A mesh is set for the sharded part; a pmap is left inside it."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
reduce_rows = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")


@jax.jit
def sharded(x):
    return jax.lax.with_sharding_constraint(x, P("data", "model")) * 2


def main():
    x = np.ones((8, 8), np.float32)
    total = reduce_rows(x)
    with jax.set_mesh(mesh):
        y = sharded(x)
        z = reduce_rows(x)  # finds: pmap-refused-under-set-mesh
    print(total.shape, y.shape, z.shape)
    return sharded(jnp.ones((4, 4)))


if __name__ == "__main__":
    main()
