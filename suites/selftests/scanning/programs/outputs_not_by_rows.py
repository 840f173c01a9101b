import jax

whole = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i", out_axes=None)
columns = jax.pmap(lambda x: 2 * x, out_axes=1)
both = jax.pmap(lambda x: (jax.lax.psum(x, "i"), x), axis_name="i", out_axes=(None, 0))


def main(x):
    total = whole(x)
    for row in total:
        print(row)
    print(total[0], total[1:], columns(x)[0])
    loss, rows = both(x)
    return loss[0], rows[0]  # finds: index-replicates-the-row


def loop(x):
    return list(columns(x))  # finds: iteration-goes-through-the-host
