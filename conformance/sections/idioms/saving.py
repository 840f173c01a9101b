"""What modules on checkpoints share: a training step, its model, and orbax's calls."""

from __future__ import annotations

from collections.abc import Mapping
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
from conformance.spec.topology import Place
from conformance.worker.bodies import Body

CLAIM = "pmap-silence.checkpoints"
ORBAX = ("orbax-checkpoint",)
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
