import jax

for name in ("shape", "axis_shapes", "axis_sizes"):
    try:
        mesh = jax.make_mesh(**{name: (jax.device_count(),)}, axis_names=("i",))
        print(f"{name}: {mesh.size} devices")
    except TypeError as error:
        print(f"{name}: TypeError: {error}")
