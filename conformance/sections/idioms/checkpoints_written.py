"""Checkpoints that another release, implementation or topology wrote, read and trained on.

`stored` has them, with the program that wrote them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import AXIS, batch, copies
from conformance.sections.idioms.saving import (
    CLAIM,
    DEADLINE_S,
    ORBAX,
    after,
    nothing,
    on_all,
    restored_by_orbax,
    update,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.expectation import raises, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.topology import ONE_AND_SEVERAL, ONE_AND_TWO, ONE_PROCESS, Place, Topology
from conformance.worker.protocols import Cluster, Implementation

STORED = Path(__file__).with_name("stored")
WRITTEN_STEPS = 2  # of training, before a state was saved


@dataclass(frozen=True, slots=True)
class Written:
    """A state in `stored`: what wrote it, and with how many copies in a file."""

    key: str
    folder: str
    text: str
    topology: str
    whole: bool  # whether orbax has all copies, or one


WRITTEN: Mapping[str, Written] = table(
    Written(
        "legacy-072-one-process",
        "legacy-0.7.2-1x8",
        "legacy pmap of JAX 0.7.2 in one process",
        "1x8",
        whole=True,
    ),
    Written(
        "legacy-092-two-processes",
        "legacy-0.9.2-2x2",
        "legacy pmap of JAX 0.9.2 in two processes",
        "2x2",
        whole=False,
    ),
    Written(
        "new-092-one-process",
        "new-0.9.2-1x8",
        "new pmap of JAX 0.9.2 in one process",
        "1x8",
        whole=True,
    ),
)


def stored_by(written: Written) -> dict[str, Any]:
    """NumPy's single copy of the state that was written."""
    return after(Place(Topology.parse(written.topology), 0), WRITTEN_STEPS)


def target_of(written: Written) -> dict[str, Any]:
    """NumPy arrays of the shapes and dtypes that orbax saved."""
    count = Topology.parse(written.topology).devices
    one = nothing()
    return {
        name: np.stack([leaf] * count) if written.whole else np.asarray(leaf)
        for name, leaf in one.items()
    }


def single(written: Written, state: Any) -> Any:
    """One copy of a restored state, on the host."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0] if written.whole else leaf, state)


def from_arrays(folder: Path, written: Written) -> Any:
    """The state in NumPy's file, one copy."""
    with np.load(folder / "state.npz") as arrays:
        return {name: arrays[name][0] for name in arrays}


def from_pickle(folder: Path, written: Written) -> Any:
    """The state in the pickle of a JAX's arrays, one copy."""
    state = pickle.loads((folder / "state.pickle").read_bytes())
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], state)


def from_orbax(folder: Path, written: Written) -> Any:
    """The state that orbax saved, restored to NumPy arrays, one copy."""
    return single(written, restored_by_orbax(folder, target_of(written)))


def without_target(folder: Path, written: Written) -> Any:
    """The state that orbax saved, restored without a target, one copy."""
    return single(written, restored_by_orbax(folder, None))


def by_pytree(folder: Path, written: Written) -> Any:
    """The state that orbax saved, restored by its older interface without arguments, one copy."""
    import orbax.checkpoint

    return single(written, orbax.checkpoint.PyTreeCheckpointer().restore(folder / "orbax"))


Read = Callable[[Path, Written], Any]


def trained_on(impl: Implementation, cluster: Cluster, written: Written, read: Read) -> Any:
    """The state is read, copied to the devices, and trained for one more step."""
    state = read(STORED / written.folder, written)
    rows = batch(impl, cluster, WRITTEN_STEPS + 1)
    return impl.map(update(), AXIS)(copies(impl, cluster, state), *rows)


def continued(written: Written) -> Expectation:
    """The state after one more step of this cluster's own examples."""

    def model(place: Place) -> Any:
        return on_all(place, after(place, WRITTEN_STEPS + 1, stored_by(written)))

    return returns(model, text="the stored state after one more step")


def of_the_first_step() -> Expectation:
    """The state after one step, without a checkpoint."""
    return returns(lambda place: on_all(place, after(place, 1)), text="the state after a step")


def each_way(written: Written) -> Columns:
    """All ways that name what they restore to."""
    right = continued(written)
    return everywhere(steps(arrays=right, pickle=right, orbax=right))


@family(
    "idioms.checkpoints.{written}",
    written=WRITTEN,
    claim=CLAIM,
    title="A state that {written.text} wrote, read and trained on: the model's numbers.",
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    requires=ORBAX,
    deadline_s=DEADLINE_S,
    expect=each_way,
)
def upgrade(impl: Implementation, cluster: Cluster, written: Written) -> None:
    """NumPy's arrays, a pickle of JAX's, and orbax's files with a target of NumPy arrays."""
    cluster.step("arrays", trained_on, impl, cluster, written, from_arrays)
    cluster.step("pickle", trained_on, impl, cluster, written, from_pickle)
    cluster.step("orbax", trained_on, impl, cluster, written, from_orbax)


NO_SHARDING = "Sharding of jax.Array cannot be None"
OTHER_DEVICES = "Topology mismatch detected"
NO_DEVICES = "sharding passed to deserialization should be specified"


def with_devices(written: Written) -> bool:
    """Return whether orbax saved the devices of the arrays."""
    return written.whole and not legacy(written)


def legacy(written: Written) -> bool:
    """Return whether legacy pmap returned what was saved."""
    return written.key.startswith("legacy")


def without_targets(written: Written) -> Expectation:
    """Return what orbax restores without a target on the devices that it saved, if any."""
    unnamed = written.whole and legacy(written)
    right = continued(written)
    return steps(
        trained=of_the_first_step(),
        standard=right,
        pytree=raises(ValueError, NO_SHARDING) if unnamed else right,
    )


@family(
    "idioms.checkpoints.{written}.no-target",
    written=WRITTEN,
    claim=CLAIM,
    title="A state that {written.text} wrote, restored by orbax without a target.",
    needs=lambda written: devices(
        Topology.parse(written.topology).devices if with_devices(written) else 2
    ),
    topologies=lambda written: ONE_PROCESS if with_devices(written) else ONE_AND_TWO,
    left_out=lambda written: "other tests cover other devices" if with_devices(written) else "",
    requires=ORBAX,
    deadline_s=DEADLINE_S,
    cause=lambda written: (
        "orbax-saves-no-sharding-of-legacy-pmap" if written.whole and legacy(written) else ""
    ),
    expect=lambda written: everywhere(without_targets(written)),
)
@family(
    "idioms.checkpoints.{written}.no-target-elsewhere",
    written=WRITTEN,
    only=with_devices,
    claim=CLAIM,
    title="A state that {written.text} wrote, restored on other devices by orbax without a target.",
    needs=devices(2),
    topologies=("2x2",),
    requires=ORBAX,
    deadline_s=DEADLINE_S,
    cause="orbax-restores-to-the-devices-that-saved",
    expect=everywhere(
        steps(
            trained=of_the_first_step(),
            standard=raises(ValueError, OTHER_DEVICES),
            pytree=raises(ValueError, NO_DEVICES),
        )
    ),
)
def upgrade_without_target(impl: Implementation, cluster: Cluster, written: Written) -> None:
    """orbax's StandardCheckpointer and PyTreeCheckpointer are to find out what they restore to.

    The mapped function is called before: what refuses to restore leaves nothing to map.
    """
    rows = batch(impl, cluster, 1)
    cluster.step("trained", impl.map(update(), AXIS), copies(impl, cluster, nothing()), *rows)
    cluster.step("standard", trained_on, impl, cluster, written, without_target)
    cluster.step("pytree", trained_on, impl, cluster, written, by_pytree)
