# from legacy_pmap@0.9.2 to new_pmap@0.11.0
import jax

f = jax.pmap(lambda x: jax.lax.psum(x, "α"), axis_name="α")  # finds: axis-name-not-ascii-aborts
