# from legacy_pmap@0.7.2 to shard_map@0.12.0.1
import jax

mesh = jax.make_mesh(shape=(8,), axis_names=("d",))  # finds: make-mesh-axes-explicit
