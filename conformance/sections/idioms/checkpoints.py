"""Checkpoints of a replicated state: by orbax-checkpoint, as a pickle, as NumPy's arrays.

One release saves a state and restores it. Processes share a folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    batch,
    copies,
)
from conformance.sections.idioms.saving import (
    CLAIM,
    DEADLINE_S,
    ORBAX,
    RESUMED,
    SAVED,
    Form,
    after,
    again,
    nothing,
    on_all,
    pickled,
    read_by_flax,
    restored_by_orbax,
    saved_by_orbax,
    shared_folder,
    unpickled,
    update,
    written_by_flax,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.expectation import raises, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import SHARD_MAP
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation

REFUSED = "Cannot serialize host local jax.Array"


def first_copy(leaf: Any) -> Any:
    """The first local copy of a leaf that has one for each device, on the host."""
    return np.asarray(leaf.addressable_shards[0].data).reshape(leaf.shape[1:])


# --- Saved and restored by one release ------------------------------------------------------------

FORMS: Mapping[str, Form] = table(
    Form(
        "orbax-mapped",
        "A mapped state, saved by orbax as it is,",
        saved_by_orbax,
        restored_by_orbax,
        one_copy=False,
        requires=ORBAX,
        topologies=ONE_PROCESS,
        left_out="orbax raises in several processes",
    ),
    Form(
        "orbax-one-copy",
        "One copy of a mapped state, saved by orbax,",
        saved_by_orbax,
        restored_by_orbax,
        one_copy=True,
        requires=ORBAX,
    ),
    Form(
        "pickled",
        "A mapped state, pickled as it is,",
        pickled,
        unpickled,
        one_copy=False,
        topologies=ONE_PROCESS,
        left_out="in several processes, no process has the whole array",
    ),
    Form(
        "flax-bytes",
        "One copy of a mapped state, as flax's bytes,",
        written_by_flax,
        read_by_flax,
        one_copy=True,
        requires=("flax",),
    ),
)


def resumed(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """A state is trained, saved, restored and trained for one more step."""
    step = impl.map(update(), AXIS)
    state = step(copies(impl, cluster, nothing()), *batch(impl, cluster, 1))
    kept = jax.tree.map(first_copy, state) if form.one_copy else state
    with shared_folder(cluster) as folder:

        def save() -> Any:
            form.save(folder, kept)
            cluster.meet()
            return np.array(True)

        def resume() -> Any:
            found = form.restore(folder, kept)
            if form.one_copy:
                found = copies(impl, cluster, found)
            return step(found, *batch(impl, cluster, 2))

        if cluster.step(SAVED, save) is not None:
            cluster.step(RESUMED, resume)


def right() -> Expectation:
    """The state is saved, and training goes on from it."""
    return steps(
        saved=returns(lambda place: np.array(True), text="a state that is saved"),
        resumed=returns(
            lambda place: on_all(place, after(place, 2)),
            text="the state after one more step",
            mistakes={"a step from the state before": lambda place: on_all(place, again(place))},
        ),
    )


@family(
    "idioms.checkpoints.{form}",
    form=FORMS,
    claim=CLAIM,
    title="{form.text} restored and trained on: the model's numbers.",
    needs=devices(2),
    deadline_s=DEADLINE_S,
    expect=everywhere(right()),
)
def resume_in_place(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """One release saves and restores."""
    resumed(impl, cluster, form)


REFUSED_FORMS: Mapping[str, Form] = table(
    Form(
        "orbax-mapped-refused",
        "A mapped state in several processes, saved by orbax as it is,",
        saved_by_orbax,
        restored_by_orbax,
        one_copy=False,
        requires=ORBAX,
    ),
)


@family(
    "idioms.checkpoints.{form}",
    form=REFUSED_FORMS,
    claim=CLAIM,
    title="{form.text} is refused as arrays of one process; shard_map's arrays are saved.",
    needs=devices(2),
    topologies=("2x2",),
    deadline_s=DEADLINE_S,
    cause="orbax-refuses-arrays-of-one-process",
    expect=of_pmaps(steps(saved=raises(ValueError, REFUSED)), otherwise="") | {SHARD_MAP: right()},
)
def refuse_in_processes(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """pmap's arrays are of one process, shard_map's of all."""
    resumed(impl, cluster, form)
