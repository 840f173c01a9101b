import jax

try:
    print(dict(jax.make_mesh(axis_sizes=(8,), axis_names=("i",)).shape))
except TypeError as error:
    print(error)
