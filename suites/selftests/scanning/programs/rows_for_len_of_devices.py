import jax

jax.distributed.initialize()  # finds: lost-peer-ends-in-sigabrt
step = jax.pmap(lambda x: x.sum())
count = len(jax.devices())

def main(batch):
    rows = batch.reshape((count, -1) + batch.shape[1:])
    return step(rows)  # finds: row-count-is-not-checked
