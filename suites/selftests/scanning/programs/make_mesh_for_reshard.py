import jax

mesh = jax.make_mesh((8,), ("i",))
rows = jax.NamedSharding(mesh, jax.P("i"))
run = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))


@jax.jit
def step(x):
    return run(jax.reshard(x, rows))
