"""Everything is fetched before it is looked at."""
import jax
import jax.numpy as jnp
import numpy as np

encode = jax.pmap(lambda p, x: jnp.tanh(x @ p), in_axes=(None, 0))
both = jax.pmap(lambda x: (x.sum(), {"max": x.max()}))


def to_numpy(tree):
    return jax.tree.map(np.asarray, tree)


def embed(params, images):
    n = jax.local_device_count()
    out = encode(params, images.reshape(n, -1, images.shape[-1]))
    out = np.asarray(out)
    return out.reshape(-1, out.shape[-1])[: len(images)]


def statistics(x):
    total, others = both(x)
    total, others = jax.device_get((total, others))
    print(total[0], others["max"][1:])
    for one in total:
        print(one)
    return list(others["max"])


def local_rows(x):
    out = encode(np.eye(3, dtype=np.float32), x)
    return [np.asarray(shard.data) for shard in out.addressable_shards]


def tuple_not_array(x):
    result = both(x)
    return result[0], result[1]["max"]


def last(x):
    host = to_numpy(both(x)[1])
    return host["max"][-1]
