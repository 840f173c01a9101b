"""Barriers between processes, made by hand with a psum, aligned and misaligned.

The document describes misaligned barriers as a halted TPU core. On other platforms a misaligned
program may hang, or pair one collective with another and continue with wrong values: so every value
is compared, and the fault names the processes that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from conformance.sections.errors import sync
from conformance.sections.errors.waiting import (
    HANG_S,
    MISSING_FACT,
    WAITED_FOR_S,
    Together,
    counted,
    heard,
    is_last,
    say,
    summing,
    timed,
    total,
)
from conformance.spec.aspects import OUTCOME
from conformance.spec.clause import processes
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, hangs, in_steps, noted, raises, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.faults import all_but_the_last
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import double, doubled, psum
from conformance.worker.protocols import Cluster, Implementation

ALIGNED_FACT = "errors.barriers.hand-made-aligned"
MISALIGNED_FACT = "errors.barriers.hand-made-misaligned"

DEFAULTS = Defaults(
    claim="migrate-pmap.core-halted", needs=processes(2), topologies=SEVERAL_PROCESSES
)


def hand_made(impl: Implementation, cluster: Cluster) -> Callable[[], Any]:
    """A barrier as users write it: a psum of ones over all devices, and its result is awaited."""
    function = impl.map(psum())
    ones = impl.given(np.ones(cluster.topology.devices_per_process, np.float32))
    return lambda: jax.block_until_ready(function(ones))


def halted(otherwise: Model, mistakes: Mapping[str, Model] | None = None) -> Expectation:
    """The documented end of a misaligned program; `mistakes` name what it may return instead."""
    error = raises(
        "JaxRuntimeError",
        "INTERNAL: Core halted unexpectedly",
        otherwise=otherwise,
        mistakes=mistakes or {},
    )
    return replace(error, claims=OUTCOME)


@DEFAULTS.clause(
    "errors.barriers.hand-made-aligned",
    fact=ALIGNED_FACT,
    expect=everywhere(
        steps(barrier=returns(counted), program=returns(total()), barrier_again=returns(counted))
    ),
)
def hand_made_aligned(impl: Implementation, cluster: Cluster) -> None:
    """Hand-made barriers that all processes reach in the same order."""
    wait, program = hand_made(impl, cluster), summing(impl, cluster)
    cluster.step("barrier", wait)
    cluster.step("program", program)
    cluster.step("barrier again", wait)


@DEFAULTS.clause(
    "errors.barriers.hand-made-late",
    fact=ALIGNED_FACT,
    expect=everywhere(
        every(
            in_steps(returns(counted), "first barrier", "second barrier", "third barrier"),
            Together(),
        )
    ),
)
def hand_made_late(impl: Implementation, cluster: Cluster) -> None:
    """A hand-made barrier that one process reaches late: the others wait."""
    wait = hand_made(impl, cluster)
    timed(cluster, "first barrier", wait, late=False)
    timed(cluster, "second barrier", wait, late=True)
    timed(cluster, "third barrier", wait, late=False)


ALIGNED = "aligned"  # before what is not
MET = "the sum of the rows of those at the program and the ones of those at the barrier"


def met(*, at_program: bool) -> Model:
    """Return the model of a collective that the two halves of the processes enter from different
    programs.
    """

    @described(
        "the rows of the half that is at the program, plus the ones of the half at the barrier"
    )
    def model(place: Place) -> Any:
        half = place.process % 2 if at_program else 1 - place.process % 2
        rows = place.all_rows().reshape(place.topology.processes, -1)
        summed = rows[half::2].sum() + rows[1 - half :: 2].size
        return np.full(place.topology.devices_per_process, summed, np.float32)

    return model


@dataclass(frozen=True, slots=True)
class Swapped:
    """A program that swaps places with a barrier: the shape of the row that it sums."""

    key: str
    text: str
    shape: tuple[int, ...]

    @property
    def expected(self) -> Expectation:
        """Both end as documented."""
        if self.shape:  # what is not of one size cannot be paired
            return steps(barrier=halted(counted), program=halted(total(*self.shape)))
        return steps(
            barrier=halted(counted, {MET: met(at_program=False)}),
            program=halted(total(), {MET: met(at_program=True)}),
        )


SWAPPED: Mapping[str, Swapped] = table(
    Swapped(
        "swapped",
        "Half of the processes run a program before a hand-made barrier, the others after it.",
        (),
    ),
    Swapped(
        "swapped-sizes",
        "Half of the processes run a program before a hand-made barrier, the others "
        "after it; its collective has another size than the barrier's.",
        (64,),
    ),
)


@DEFAULTS.family(
    "errors.barriers.hand-made-{swapped}",
    swapped=SWAPPED,
    fact=MISALIGNED_FACT,
    title="{swapped.text}",
    expect=lambda swapped: everywhere(swapped.expected),
)
def hand_made_swapped(impl: Implementation, cluster: Cluster, swapped: Swapped) -> None:
    """A barrier made by hand and a program, which half of the processes run the other way round."""
    wait, program = hand_made(impl, cluster), summing(impl, cluster, *swapped.shape)
    if cluster.process % 2:
        cluster.step("barrier", wait)
        cluster.step("program", program)
    else:
        cluster.step("program", program)
        cluster.step("barrier", wait)


@DEFAULTS.clause(
    "errors.barriers.hand-made-and-sync",
    fact=MISALIGNED_FACT,
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    left_out="two processes show the same as four",
    expect=everywhere(
        every(
            in_steps(returns(counted), ALIGNED),
            steps(made_by_hand=halted(counted), global_devices=halted(lambda place: [])),
        )
    ),
)
def hand_made_and_sync(impl: Implementation, cluster: Cluster) -> None:
    """Half of the processes wait at a hand-made barrier, the others in sync_global_devices."""
    wait = hand_made(impl, cluster)
    # Each was used before: a CPU gives up after 30 s on the first collective of some devices.
    cluster.step(ALIGNED, wait)
    sync(ALIGNED)
    if cluster.process % 2:
        cluster.step("made by hand", wait)
        cluster.step("global devices", sync, "a")
    else:
        cluster.step("global devices", sync, "a")
        cluster.step("made by hand", wait)


@DEFAULTS.clause(
    "errors.barriers.hand-made-process-missing",
    fact=MISSING_FACT,
    claim="pmap-silence.misaligned-barriers",
    topologies=FOUR_PROCESSES,
    deadline_s=HANG_S,
    expect=everywhere(hangs("barrier again", all_but_the_last)),
    cause="collective-waits-for-every-process",
)
def hand_made_process_missing(impl: Implementation, cluster: Cluster) -> None:
    """The last process never reaches a second hand-made barrier."""
    wait = hand_made(impl, cluster)
    cluster.step("barrier", wait)
    if not is_last(cluster):
        cluster.step("barrier again", wait)


ALONE = noted(
    "programs",
    "compiles one program, without a collective",
    lambda _, programs: [len(one["collectives"]) for one in programs] == [0],
)
NOBODY_WAITED = noted(
    "returned before the last began",
    "waits for nobody: all others return before the last process begins its call",
    lambda _, first: first is True,
)


@DEFAULTS.clause(
    "errors.barriers.map-without-collective",
    claim="migrate-pmap.synchronization-may-differ",
    # It may, says the document. That it does not is what legacy's users rely on.
    expect=of_pmaps(
        every(
            in_steps(returns(doubled(2)), "from empty caches", "second call", "third call"),
            steps(from_empty_caches=ALONE),
            steps(second_call=NOBODY_WAITED, third_call=NOBODY_WAITED),
        ),
        "the claim is about pmap",
    ),
    fresh=True,  # events of a job stay set
)
def map_without_collective(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function without a collective does not synchronize processes: it compiles none and
    waits for none.
    """
    function, rows = impl.map(double()), impl.given(cluster.rows(2))
    cluster.compiled("from empty caches", function, rows)
    others = range(cluster.topology.processes - 1)
    for name in ("second call", "third call"):
        sync(f"before the {name}")
        if is_last(cluster):
            first = all(heard(f"{name}: {other} returned", WAITED_FOR_S) for other in others)
            say(f"{name}: the last begins")
            cluster.step(name, function, rows)
        else:
            cluster.step(name, function, rows)
            first = not heard(f"{name}: the last begins", 0.001)
            say(f"{name}: {cluster.process} returned")
        cluster.note("returned before the last began", first)
