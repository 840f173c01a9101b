import jax

double = jax.pmap(lambda x: 2 * x)


def using_legacy_pmap():
    return False


def main(x):
    out = double(x)
    if using_legacy_pmap():
        return out[0]
    return out.addressable_shards[0].data.squeeze(0)
