"""Checkpoints of a state that a plain jit trains: by orbax, as a pickle, as flax's bytes.

The state is a global array of all processes, so that nothing is taken off its devices first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import RATE
from conformance.sections.idioms.jitted import mean_loss
from conformance.sections.idioms.models import KEPT
from conformance.sections.idioms.saving import (
    DEADLINE_S,
    ORBAX,
    RESUMED,
    SAVED,
    Form,
    after,
    again,
    nothing,
    pickled,
    read_by_flax,
    restored_by_orbax,
    saved_by_orbax,
    shared_folder,
    unpickled,
    written_by_flax,
)
from conformance.sections.idioms.sharded import sharded_batch, whole
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

FORMS: Mapping[str, Form] = table(
    Form(
        "orbax",
        "saved by orbax as it is",
        saved_by_orbax,
        restored_by_orbax,
        one_copy=True,
        requires=ORBAX,
    ),
    Form(
        "pickled",
        "pickled as it is",
        pickled,
        unpickled,
        one_copy=True,
        topologies=ONE_PROCESS,
        left_out="the same pattern under pmap runs in one process only",
    ),
    Form(
        "flax-bytes",
        "as flax's bytes",
        written_by_flax,
        read_by_flax,
        one_copy=True,
        requires=("flax",),
    ),
)


def update(state: Any, x: Any, y: Any) -> Any:
    """A step of descent with momentum, counted."""
    moment = KEPT * state["moment"] + jax.grad(mean_loss)(state["weights"], x, y)
    weights = state["weights"] - RATE * moment
    return {"moment": moment, "step": state["step"] + 1, "weights": weights}


def one_copy(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state in the dtypes of the program."""
    floats = {name: np.asarray(state[name], np.float32) for name in ("moment", "weights")}
    return {**floats, "step": np.int32(state["step"])}


def right() -> Expectation:
    """The state is saved, and training goes on from it."""

    def resumed(place: Place) -> dict[str, Any]:
        return one_copy(after(place, 2))

    def from_the_state_before(place: Place) -> dict[str, Any]:
        return one_copy(again(place))

    return steps(
        saved=returns(lambda place: np.array(True), text="a state that is saved"),
        resumed=returns(
            resumed,
            text="the state after one more step",
            mistakes={"a step from the state before": from_the_state_before},
        ),
    )


@family(
    "idioms.jit-checkpoints.{form}",
    form=FORMS,
    claim="pmap-silence.jit-with-shardings",
    title="The state of a plain jit, {form.text}, restored and trained on: the model's numbers.",
    needs=devices(2),
    deadline_s=DEADLINE_S,
    expect=of_jax(right()),
)
def resume(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """A state is trained, saved, restored and trained for one more step."""
    step = jax.jit(update, out_shardings=whole(impl))
    state = step(jax.device_put(nothing(), whole(impl)), *sharded_batch(impl, cluster, 1))
    with shared_folder(cluster) as folder:

        def save() -> Any:
            form.save(folder, state)
            cluster.meet()
            return np.array(True)

        def go_on() -> Any:
            restored = jax.device_put(form.restore(folder, state), whole(impl))
            return step(restored, *sharded_batch(impl, cluster, 2))

        if cluster.step(SAVED, save) is not None:
            cluster.step(RESUMED, go_on)
