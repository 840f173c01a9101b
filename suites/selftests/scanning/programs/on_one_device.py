import jax

double = jax.pmap(lambda x: 2 * x)


def row(value):
    if isinstance(value.sharding, jax.sharding.SingleDeviceSharding):  # finds: outputs-in-a-named-sharding
        return value[0]
    return value[0]  # finds: index-replicates-the-row


def main(x):
    return row(double(x))
