# from new_pmap@0.11.2 to new_pmap@0.12.0.1, unchanged
import jax
from jax.sharding import AxisType

mesh = jax.make_mesh(shape=(8,), axis_names=("i",), axis_types=(AxisType.Auto,))
other = jax.make_mesh(shape=(8,), axis_names=("i",))  # finds: make-mesh-takes-no-shape
