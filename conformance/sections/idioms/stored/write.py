"""Train for two steps under pmap and save the state: as a pickle, as NumPy's arrays, by orbax.

Plain JAX, as a project has it. The folders beside it were written by it, each by one release:

    pmap-conformance launch write.py FOLDER IMPLEMENTATION --topology 2x2 --target jax==0.9.2 \
        --extra orbax-checkpoint

IMPLEMENTATION is `legacy_pmap` or `new_pmap`. The state has one copy for each local device. orbax
refuses it in several processes: there it saves one copy.
"""

from __future__ import annotations

import json
import pickle
import sys
from importlib import metadata
from pathlib import Path

import jax
import numpy as np

jax.distributed.initialize()
folder, implementation = Path(sys.argv[1]).absolute(), sys.argv[2]
if hasattr(jax.config, "jax_pmap_shmap_merge"):
    jax.config.update("jax_pmap_shmap_merge", implementation == "new_pmap")

WIDTH, BATCH, STEPS = 3, 2, 2
RATE, KEPT = 2.0**-3, 0.5
count, local = jax.device_count(), jax.local_device_count()
mine = slice(jax.process_index() * local, (jax.process_index() + 1) * local)


def loss(weights, x, y):
    """The mean square error of a linear model."""
    return ((x @ weights - y) ** 2).mean()


def update(state, x, y):
    """A step of descent with momentum."""
    gradient = jax.lax.pmean(jax.grad(loss)(state["weights"], x, y), "batch")
    moment = KEPT * state["moment"] + gradient
    weights = state["weights"] - RATE * moment
    return {"moment": moment, "step": state["step"] + 1, "weights": weights}


def save(state):
    """Save a state by orbax, and wait until it is written."""
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "orbax", state)


step = jax.pmap(update, axis_name="batch")
one = {
    "moment": np.zeros(WIDTH, np.float32),
    "step": np.int32(0),
    "weights": np.zeros(WIDTH, np.float32),
}
state = jax.tree.map(lambda leaf: np.stack([leaf] * local), one)
rows = np.arange(1, 1 + count * BATCH * WIDTH, dtype=np.float32).reshape(count, BATCH, WIDTH)
targets = np.arange(1, 1 + count * BATCH, dtype=np.float32).reshape(count, BATCH)
for n in range(1, STEPS + 1):
    state = jax.block_until_ready(
        step(state, ((rows * 3 + n) % 5 - 1)[mine], ((targets + n) % 4)[mine])
    )

first = jax.process_index() == 0
if first:
    folder.mkdir(parents=True)
    (folder / "state.pickle").write_bytes(pickle.dumps(state))
    np.savez(folder / "state.npz", **jax.device_get(state))
    written = {
        "implementation": implementation,
        "jax": jax.__version__,
        "orbax-checkpoint": metadata.version("orbax-checkpoint"),
        "topology": f"{jax.process_count()}x{local}",
    }
    (folder / "written.json").write_text(json.dumps(written, indent=2) + "\n")

copy = jax.tree.map(
    lambda leaf: np.asarray(leaf.addressable_shards[0].data).reshape(leaf.shape[1:]), state
)
save(state if jax.process_count() == 1 else copy)
if first:  # it names the folder, which is this machine's own
    (folder / "orbax" / "commit_success.txt").write_text("Checkpoint commit was successful.\n")
