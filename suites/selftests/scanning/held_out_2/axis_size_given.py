"""Maps that are given their size, because all arguments are static or none is mapped."""
import jax
import jax.numpy as jnp
from jax import random


def make_init(model, shape):
    def init(key):
        return model.init(key, jnp.zeros(shape))

    n = jax.local_device_count()
    return jax.pmap(init, axis_name="i", axis_size=n)  # finds: axis-size-cuts-the-list


def make_vmap(model, shape, n):
    return jax.vmap(lambda k: model.init(k, jnp.zeros(shape)), axis_size=n)


def seeds(n):
    return random.split(random.PRNGKey(0), n)


def main(model):
    n = jax.local_device_count()
    params = make_init(model, (1, 8))(seeds(n))
    others = make_vmap(model, (1, 8), n)(seeds(n))
    leaf = jax.tree.leaves(others)[0]
    print(leaf[0])
    return params
