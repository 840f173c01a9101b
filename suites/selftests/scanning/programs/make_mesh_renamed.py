# from new_pmap@0.10.0 to new_pmap@0.12.0.1
import jax
from jax.sharding import AxisType

mesh = jax.make_mesh(axis_shapes=(8,), axis_names=("d",), axis_types=(AxisType.Auto,))  # finds: make-mesh-sizes-renamed
