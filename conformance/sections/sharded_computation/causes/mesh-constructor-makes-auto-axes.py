import jax
import numpy as np

for mesh in (
    jax.make_mesh((4, 2), ("X", "Y")),
    jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("X", "Y")),
):
    print(*(kind.name for kind in mesh.axis_types))
