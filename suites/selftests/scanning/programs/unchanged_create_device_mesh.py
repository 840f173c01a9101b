# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
from jax.experimental import mesh_utils

one = mesh_utils.create_device_mesh(8)  # finds: create-device-mesh-takes-a-sequence
two = mesh_utils.create_device_mesh((2, 4))
