import jax


def parallel(function, **options):
    return jax.pmap(function, **options)  # finds: negative-axis-taken-literally


def main(f, x):
    options = dict(axis_name="i")
    return parallel(f, **options, out_axes=-1), x[0]


def other(f):
    return parallel(f, axis_name="i", out_axes=1)
