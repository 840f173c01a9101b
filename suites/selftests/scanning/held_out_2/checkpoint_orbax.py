"""Checkpoints by orbax: saved from a replicated state, restored into one."""
import os

import jax
import numpy as np
import orbax.checkpoint as ocp


class Checkpointer:
    def __init__(self, directory, keep=3):
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True)
        self.manager = ocp.CheckpointManager(os.path.abspath(directory), options=options)

    def save(self, step, state):
        """Save one copy of a state that is on all local devices."""
        one = jax.tree_util.tree_map(lambda x: np.array(x.addressable_shards[0].data)[0], state)
        self.manager.save(step, args=ocp.args.StandardSave(one))

    def restore(self, like):
        step = self.manager.latest_step()
        if step is None:
            return 0, like
        return step, self.manager.restore(step, args=ocp.args.StandardRestore(like))


def replicate(tree):
    devices = jax.local_devices()
    return jax.tree.map(lambda x: jax.device_put_sharded(len(devices) * [x], devices), tree)  # finds: device-put-stackers-gone


def main(step_fn, state, batches):
    checkpointer = Checkpointer("/tmp/ckpt")
    start, state = checkpointer.restore(state)
    state = replicate(state)
    p_step = jax.pmap(step_fn, axis_name="batch")
    for step, batch in enumerate(batches, start):
        state = p_step(state, batch)  # finds: own-output-traced-again
        if step % 500 == 0:
            checkpointer.save(step, state)
    checkpointer.manager.wait_until_finished()
