# from new_pmap@0.8.3 to new_pmap@0.12.0.1
import jax
import jax.numpy as jnp

step = jax.pmap(lambda x: 2 * x, axis_name="i")


def main(batch):
    out = step(batch)
    for one in out:
        print(one)
    for one in reversed(out):  # finds: iteration-goes-through-the-host
        print(one)
    return out[0], out[jnp.arange(2)]  # finds: index-replicates-the-row
