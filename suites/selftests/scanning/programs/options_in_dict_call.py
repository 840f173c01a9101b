import jax

OPTIONS = dict(axis_name="i", out_axes=(-1, 0))
MORE = {**OPTIONS, "donate_argnums": 0}


def main(f, x):
    a = jax.pmap(f, **OPTIONS)  # finds: negative-axis-taken-literally
    b = jax.pmap(f, **MORE)  # finds: negative-axis-taken-literally
    return a, b
