import jax

scaled = jax.pmap(lambda x: 2 * x)
summed = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i", out_axes=None)
shifted = jax.pmap(lambda x, offset: x + offset.sum(), in_axes=(0, None))
columns = jax.pmap(lambda x: x + 1, in_axes=1)


def main(x):
    rows = scaled(x)
    total = summed(x)
    print(shifted(x, rows))  # finds: refused-by-in-shardings
    print(columns(rows))  # finds: refused-by-in-shardings
    print(scaled(total))  # finds: refused-by-in-shardings
    print(shifted(rows, total))
    return shifted(rows, rows.mean(0))
