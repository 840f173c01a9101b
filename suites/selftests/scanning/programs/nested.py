import jax

inner = jax.pmap(lambda x: x.sum(), axis_name="j")
outer = jax.pmap(lambda rows: inner(rows), axis_name="i")  # finds: nested-pmap-refused
