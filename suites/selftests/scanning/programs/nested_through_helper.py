import jax

reduce_rows = jax.pmap(lambda r: jax.lax.psum(r, "r"), axis_name="r")

def total(matrix):
    return reduce_rows(matrix)  # finds: nested-pmap-refused

totals = jax.pmap(total, axis_name="c")
