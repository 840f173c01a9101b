import jax

devices = jax.local_devices()
everywhere = jax.pmap(lambda x: x + 1)
named = jax.pmap(lambda x: x + 2, devices=devices)
first_half = jax.pmap(lambda x: x * 2, devices=devices[:4])
with_weights = jax.pmap(lambda x, w: x * w, in_axes=(0, None))


def halves(x):
    out = everywhere(x)
    part = out[:4]  # finds: several-rows-gather-the-whole-array
    return first_half(part)  # finds: argument-elsewhere-refused


def same_devices(x):
    out = everywhere(x)
    rows = out[::2]  # finds: several-rows-gather-the-whole-array
    return named(named(rows))


def as_rows(x):
    out = everywhere(x)
    row = out.astype("float32")[0]  # finds: index-replicates-the-row
    return with_weights(x, row)


def of_one_row(x):
    total = jax.pmap(lambda x: x.sum(0))(x)
    row = total[0]  # finds: index-replicates-the-row
    return everywhere(row)  # finds: refused-by-in-shardings
