# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
