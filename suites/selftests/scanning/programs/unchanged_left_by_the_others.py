# from new_pmap@0.10.0 to new_pmap@0.12.0.1, unchanged
import jax
from jax.experimental import multihost_utils


def save(path, state):
    if jax.process_index() != 0:
        return
    path.write_text(str(state))
    multihost_utils.sync_global_devices("saved")  # finds: max-meets-sum


def log(state):
    if jax.process_index() == 0:
        print(state.sum())
    multihost_utils.sync_global_devices("logged")


def each(states):
    for state in states:
        if jax.process_index() != 0:
            continue
        multihost_utils.sync_global_devices("one")  # finds: max-meets-sum
    multihost_utils.sync_global_devices("all")
