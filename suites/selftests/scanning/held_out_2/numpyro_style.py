"""Runs chains in parallel, sequentially or vectorised, by a string."""
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import local_device_count, pmap, vmap


class Runner:
    def __init__(self, kernel, num_chains, chain_method="parallel"):
        self.kernel = kernel
        self.num_chains = num_chains
        if chain_method == "parallel" and local_device_count() < num_chains:
            warnings.warn("not enough devices; chains run one after another", stacklevel=2)
            chain_method = "sequential"
        self.chain_method = chain_method

    def _single(self, key, init):
        return jax.lax.scan(self.kernel, init, jax.random.split(key, 100))

    def run(self, key, init):
        keys = jax.random.split(key, self.num_chains)
        if self.chain_method == "sequential":
            states, zs = zip(*[self._single(k, i) for k, i in zip(keys, init)])
            return jnp.stack(zs)
        if self.chain_method == "parallel":
            partial_map = pmap(self._single)
        else:
            partial_map = vmap(self._single)
        last, zs = partial_map(keys, init)
        self._last = last
        return zs

    def get_samples(self, zs, group_by_chain=False):
        if group_by_chain:
            return zs
        return jax.tree.map(lambda x: jnp.reshape(x, (-1,) + x.shape[2:]), zs)

    @property
    def first_state(self):
        return jax.tree.map(lambda x: x[0], self._last)  # finds: index-replicates-the-row
