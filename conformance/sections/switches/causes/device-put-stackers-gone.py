import jax

for name in ("device_put_sharded", "device_put_replicated"):
    try:
        print(getattr(jax, name))
    except AttributeError as error:
        print(error)
