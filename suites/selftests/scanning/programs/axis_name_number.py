import jax

f = jax.pmap(lambda x: jax.lax.psum(x, 0), axis_name=0)  # finds: axis-name-misread
