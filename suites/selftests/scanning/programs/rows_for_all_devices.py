import jax

jax.distributed.initialize()  # finds: lost-peer-ends-in-sigabrt
step = jax.pmap(lambda x: x.sum())

def main(batch):
    batch = batch.reshape(jax.device_count(), -1, 3)
    return step(batch)  # finds: row-count-is-not-checked
