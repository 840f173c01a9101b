import jax

for name in ("reshard", "get_mesh"):
    print(name, hasattr(jax, name))
