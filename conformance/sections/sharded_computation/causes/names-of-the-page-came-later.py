import jax

names = (
    (jax, "set_mesh"),
    (jax, "reshard"),
    (jax, "get_mesh"),
    (jax.sharding, "use_abstract_mesh"),
)
for module, name in names:
    print(name, hasattr(module, name))
