"""vmap around a pmap with an spmd axis, and vmap inside."""
import jax
import jax.numpy as jnp
import numpy as np

f = jax.pmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")
inside = jax.pmap(jax.vmap(lambda x: x - x.mean(), spmd_axis_name=None))


def over_seeds(x):
    return jax.vmap(f, in_axes=1, out_axes=1)(x)  # finds: transformed-map-spans-one-process


def over_seeds_spmd(x):
    return jax.vmap(f, spmd_axis_name="seeds")(x)  # finds: spmd-axis-name-must-be-of-the-mesh


def over_rows(x):
    return jax.vmap(lambda v: v - v.mean(), spmd_axis_name="seeds")(x)


def many(x):
    y = inside(x)
    return y.sum(axis=0), y[:, 0]  # finds: results-stay-on-all-devices


def main():
    n = jax.local_device_count()
    x = np.ones((n, 3, 4), np.float32)
    print(over_seeds(x).shape, over_rows(x)[0], many(x))
