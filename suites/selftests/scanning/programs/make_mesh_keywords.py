# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

mesh = jax.make_mesh(axis_shapes=(2, 4), axis_names=("x", "y"))  # finds: make-mesh-axes-explicit
