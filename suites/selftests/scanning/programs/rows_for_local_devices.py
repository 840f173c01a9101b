import jax

step = jax.pmap(lambda x: x.sum())
count = jax.local_device_count()

def main(batch):
    rows = batch.reshape((count, -1) + batch.shape[1:])
    return step(rows)
