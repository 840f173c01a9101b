"""What modules on checkpoints share: a training step, its model, and ways to save and restore."""

from __future__ import annotations

import pickle
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    RATE,
    WIDTH,
    examples,
    on_each,
    own_gradients,
    square_loss,
)
from conformance.sections.idioms.models import KEPT
from conformance.spec.topology import ONE_AND_TWO, Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster

CLAIM = "pmap-silence.checkpoints"
ORBAX = ("orbax-checkpoint",)
SAVED, RESUMED = "saved", "resumed"
DEADLINE_S = 240.0  # of a case: each process imports orbax, which takes seconds on an idle machine


# --- The training step ----------------------------------------------------------------------------


def update() -> Body:
    """A step of data-parallel descent with momentum."""

    def body(state: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(state["weights"], x, y), AXIS)
        moment = KEPT * state["moment"] + gradient
        weights = state["weights"] - RATE * moment
        return {"moment": moment, "step": state["step"] + 1, "weights": weights}

    return body


def nothing() -> dict[str, Any]:
    """The state before the first step."""
    zero = np.zeros(WIDTH, np.float32)
    return {"moment": zero, "step": np.int32(0), "weights": zero}


def after(place: Place, n: int, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """NumPy's single copy of the state after step `n`, or after all steps until it."""
    state = dict(before or nothing())
    for k in range(n if before is not None else 1, n + 1):
        gradient = own_gradients(state["weights"], *examples(place, k)).mean(0)
        moment = KEPT * state["moment"] + gradient
        state = {"moment": moment, "step": k, "weights": state["weights"] - RATE * moment}
    return state


def on_all(place: Place, state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the state for each of this process's devices."""
    count = np.full(place.topology.devices_per_process, state["step"], np.int32)
    floats = {name: on_each(place, state[name]) for name in ("moment", "weights")}
    return {**floats, "step": count}


def saved_by_orbax(folder: Path, state: Any) -> None:
    """Save by orbax's StandardCheckpointer."""
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "orbax", state)


def restored_by_orbax(folder: Path, like: Any) -> Any:
    """Restore by orbax's StandardCheckpointer, with a target `like` what was saved."""
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(folder / "orbax", like)


def again(place: Place) -> dict[str, Any]:
    """The second step, taken from the state before the first one."""
    return after(place, 2, nothing())


# --- Ways to save and restore ---------------------------------------------------------------------

Save = Callable[[Path, Any], None]
Restore = Callable[[Path, Any], Any]


@dataclass(frozen=True, slots=True)
class Form:
    """A way to save and restore a state; of `one_copy`, or of what the mapped function returned."""

    key: str
    text: str
    save: Save
    restore: Restore
    one_copy: bool
    requires: tuple[str, ...] = ()
    topologies: tuple[str, ...] = ONE_AND_TWO
    left_out: str = ""


def pickled(folder: Path, state: Any) -> None:
    """Write a pickle of the arrays of each process as they are."""
    (folder / f"{jax.process_index()}.pickle").write_bytes(pickle.dumps(state))


def unpickled(folder: Path, like: Any) -> Any:
    """Read the pickle of this process."""
    return pickle.loads((folder / f"{jax.process_index()}.pickle").read_bytes())


def written_by_flax(folder: Path, state: Any) -> None:
    """Write flax's bytes of the state, in the first process."""
    from flax.serialization import to_bytes

    if jax.process_index() == 0:
        (folder / "state.msgpack").write_bytes(to_bytes(state))


def read_by_flax(folder: Path, like: Any) -> Any:
    """Read flax's bytes of a state."""
    from flax.serialization import from_bytes

    return from_bytes(like, (folder / "state.msgpack").read_bytes())


@contextmanager
def shared_folder(cluster: Cluster) -> Iterator[Path]:
    """A new folder for all processes, gone after all have left it."""
    from jax.experimental import multihost_utils

    number = np.uint32(secrets.randbits(32))
    if cluster.topology.processes > 1:
        number = multihost_utils.broadcast_one_to_all(number)
    folder = Path(tempfile.gettempdir(), f"conformance-checkpoint-{int(number)}")
    folder.mkdir(exist_ok=True)
    try:
        cluster.meet()
        yield folder
    finally:
        cluster.meet()
        shutil.rmtree(folder, ignore_errors=True)
