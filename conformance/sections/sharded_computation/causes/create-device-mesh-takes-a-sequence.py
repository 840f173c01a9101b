from jax.experimental import mesh_utils

print(mesh_utils.create_device_mesh((8,)).shape)
mesh_utils.create_device_mesh(8)  # the tutorial's line
