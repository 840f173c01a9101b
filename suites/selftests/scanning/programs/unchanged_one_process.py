# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax
from jax.experimental import multihost_utils

step = jax.pmap(lambda s: jax.lax.pmean(s, "i"), axis_name="i")

def main(state):
    if jax.process_index() == 0:
        averaged = step(state)  # finds: max-meets-sum
        multihost_utils.sync_global_devices("saved")  # finds: max-meets-sum
        return averaged
    return state
