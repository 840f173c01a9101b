import warnings

import jax

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    mesh = jax.make_mesh((jax.device_count(),), ("i",))
print([str(one.message).split(" in JAX")[0] for one in caught], mesh.axis_types)
