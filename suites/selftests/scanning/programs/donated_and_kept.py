# from legacy_pmap@0.9.2 to new_pmap@0.12.0.1
import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.pmap, donate_argnums=(0, 1))
def restart(opt_state, params):
    return jax.tree.map(jnp.zeros_like, opt_state), params * 0.5


@functools.partial(jax.pmap, donate_argnums=(0,))
def advance(x):
    return x + 1


class Runner:
    def __init__(self, opt_state):
        self.opt_state = opt_state
        self.fill = jax.pmap(lambda old, value: value + jnp.zeros(old.shape), donate_argnums=0)

    def run(self, value):
        made = self.fill(self.opt_state, value)
        assert self.opt_state.is_deleted()  # finds: unused-donation-kept
        return made


def main(opt_state, params, x):
    restart(opt_state, params)
    print(opt_state.is_deleted(), params.is_deleted())
    advance(x)
    print(x.is_deleted(), x.shape)
