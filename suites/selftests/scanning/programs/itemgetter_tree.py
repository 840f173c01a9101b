import operator

import jax
import jax.numpy as jnp
import numpy as np

first = operator.itemgetter(0)


def stats(x):
    return {"mean": jax.lax.pmean(x.mean(), "i"), "max": jax.lax.pmax(x.max(), "i")}


pstats = jax.pmap(stats, axis_name="i")


def take_first(tree):
    def get(leaf):
        return leaf[0]  # finds: index-replicates-the-row

    return jax.tree.map(get, tree)


def take_first_host(tree):
    tree = jax.tree.map(np.asarray, tree)
    return jax.tree.map(first, tree)


def rows_of(tree):
    return [s.data for s in jax.tree.leaves(tree)[0].addressable_shards]


def main():
    n = jax.local_device_count()
    x = np.random.rand(n, 100)
    out = pstats(x)
    print(take_first(out), take_first_host(out), rows_of(out)[0])
    print(jax.tree.map(first, out))  # finds: index-replicates-the-row
    print(out["mean"].addressable_data(0), first(x).shape)


main()
