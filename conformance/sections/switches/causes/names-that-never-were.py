import jax

for name in ("SingleDeviceSharding", "create_mesh"):
    try:
        print(getattr(jax, name))
    except AttributeError as error:
        print(error)
