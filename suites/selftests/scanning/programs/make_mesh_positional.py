# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax

mesh = jax.make_mesh((8,), ("data",))  # finds: make-mesh-axes-explicit
