import jax

for sizes in ({"axis_shapes": (8,)}, {"axis_sizes": (8,)}):
    try:
        print(dict(jax.make_mesh(**sizes, axis_names=("i",)).shape))
    except TypeError as error:
        print(error)
