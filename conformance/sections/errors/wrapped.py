"""Maps inside jit, compiled stages and plain jit, given arrays that lie elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.errors import DEVICES_CLAIM, INCOMPATIBLE, first_half, on_mesh
from conformance.sections.errors.staged import Staged
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_jax
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row
LOWERED = "pmap-silence.lowered-one-process"

TWO_MAPS = r"^Received incompatible devices for jitted computation\. Got shard_map inside jit with "
OTHER_SHARDINGS = "^Computation was compiled for input shardings that disagree with the shardings"

DEFAULTS = Defaults(
    needs=devices(COUNT),
    left_out="new pmap under jit raises there, or uses local devices only",
)


@described("this process's rows, doubled, plus one")
def plus_one(place: Place) -> Any:
    return place.rows(WIDTH) * 2 + 1


def refused(model: Model, message: str) -> Columns:
    """Expect resharding under legacy pmap, and the documented error otherwise."""
    error = twice(raises(ValueError, message, otherwise=model))
    return {LEGACY_PMAP: twice(returns(model)), NEW_PMAP: error, SHARD_MAP: error}


# --- Maps under jit


@DEFAULTS.clause(
    "errors.incompatible-devices.under-jit",
    claim=DEVICES_CLAIM,
    cause="argument-elsewhere-refused",
    expect=refused(plus_one, INCOMPATIBLE),
)
def under_jit(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function under jit, called with an argument that is committed to one device."""
    function = impl.map(double())
    rows = jax.device_put(cluster.rows(WIDTH), cluster.local_devices[1])
    cluster.twice(jax.jit(lambda x: function(x) + 1), rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.under-jit-fix-numpy",
    claim="migrate-pmap.fix-device-put-named-sharding",
    fixes="errors.incompatible-devices.under-jit",
    expect=everywhere(twice(returns(plus_one))),
)
def under_jit_from_the_host(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function under jit, called with rows from the host instead of one device."""
    function = impl.map(double())
    rows = jax.device_put(cluster.rows(WIDTH), cluster.local_devices[1])
    called = jax.jit(lambda x: function(x) + 1)
    cluster.twice(lambda x: called(np.asarray(x)), rows)


@described("the first half of the rows, doubled, and all of them, doubled")
def half_and_all(place: Place) -> Any:
    rows = place.rows(WIDTH) * 2
    return first_half(rows), rows


@DEFAULTS.clause(
    "errors.incompatible-devices.two-sizes-under-jit",
    claim=DEVICES_CLAIM,
    cause="argument-elsewhere-refused",
    expect=refused(half_and_all, TWO_MAPS),
)
def two_sizes(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function over half of the devices and one over all of them, in one jit."""
    half = impl.map(double(), devices=first_half(impl.devices))
    whole = impl.map(double())
    cluster.twice(jax.jit(lambda x: (half(first_half(x)), whole(x))), cluster.rows(WIDTH))


@DEFAULTS.clause(
    "errors.incompatible-devices.two-sizes-fix-two-jits",
    claim="pmap-silence.transforms-of-the-map",
    fixes="errors.incompatible-devices.two-sizes-under-jit",
    expect=everywhere(twice(returns(half_and_all))),
)
def two_jits(impl: Implementation, cluster: Cluster) -> None:
    """Two mapped functions over different numbers of devices, each in its own jit."""
    half, whole = impl.map(double(), devices=first_half(impl.devices)), impl.map(double())
    of_half, of_whole = jax.jit(lambda x: half(x)), jax.jit(lambda x: whole(x))
    cluster.twice(lambda x: (of_half(first_half(x)), of_whole(x)), cluster.rows(WIDTH))


# --- Compiled stages


@dataclass(frozen=True, slots=True)
class Given:
    """An argument of a compiled stage; `taken` by every implementation, or by legacy alone."""

    key: str
    text: str
    put: Callable[[Implementation, Any], Any]
    taken: bool = False


def restored(impl: Implementation, rows: Any) -> Any:
    """The rows over a mesh of their own, as a checkpoint is restored."""
    return on_mesh(rows, jax.sharding.Mesh(np.array(impl.devices), ("batch",)), "batch")


GIVEN: Mapping[str, Given] = table(
    Given(
        "one-device",
        "an array committed to one device",
        lambda impl, rows: jax.device_put(rows, impl.devices[1]),
    ),
    Given(
        "replicated",
        "an array replicated over the mapped function's devices",
        lambda impl, rows: on_mesh(rows, impl.mesh("i")),
    ),
    Given(
        "restored",
        "a restored array, sharded by rows over an axis of another name",
        restored,
        taken=True,
    ),
)


@DEFAULTS.family(
    "errors.lowered.given-{given}",
    given=GIVEN,
    claim=LOWERED,
    title="A compiled stage is called with {given.text}.",
    fact="errors.lowered.given",
    left_out="errors.lowered.several-processes tests several processes",
    cause=lambda given: "" if given.taken else "argument-elsewhere-refused",
    expect=lambda given: (
        everywhere(twice(returns(doubled(WIDTH))))
        if given.taken
        else refused(doubled(WIDTH), OTHER_SHARDINGS)
    ),
)
def stage_given(impl: Implementation, cluster: Cluster, given: Given) -> None:
    """A map is lowered and compiled for rows of the host, and given an array."""
    rows = cluster.rows(WIDTH)
    stage = Staged(impl, impl.map(double()), rows)
    cluster.twice(stage, given.put(impl, rows))


# --- Plain jit


@DEFAULTS.clause(
    "errors.incompatible-devices.jit-in-shardings",
    claim="pmap-silence.incompatible-devices-second-call",
    title=(
        "A jit with `in_shardings` is called twice with an array on its devices in another order."
    ),
    fresh=True,
    left_out="the result does not depend on the number of processes",
    expect=of_jax(twice(returns(doubled(WIDTH)))),
)
def jit_in_shardings(impl: Implementation, cluster: Cluster) -> None:
    """`jit(in_shardings=...)` of an array whose devices are in reverse order."""
    mesh = jax.sharding.Mesh(np.array(cluster.devices), ("i",))
    backwards = jax.sharding.Mesh(np.array(cluster.devices[::-1]), ("i",))
    wanted = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    function = jax.jit(lambda x: x * 2, in_shardings=wanted)
    cluster.twice(function, on_mesh(cluster.rows(WIDTH), backwards, "i"))
