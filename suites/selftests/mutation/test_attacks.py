"""Wrong JAX behaviours, invented in a review, that must be neither green nor excused.

Each row is something that JAX could do one day, as the workers would report it, judged with the
real clause and the real deviation entries. If a clause's steps are renamed, the row must follow,
because it has to be red for its invented fault and not for a missing step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from observations import WITNESS, Json, observation, raised, received, returned
from real import PACKAGES, catalogue, entries

from conformance.judging.deviations import matching
from conformance.judging.judge import judge
from conformance.model.verdicts import Verdict
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import NEW_PMAP, SHARD_MAP
from conformance.spec.observation import OUTSIDE
from conformance.spec.topology import Place, Topology

ONE, TWO, FOUR = "1x8", "2x2", "4x2"
NEWEST = "0.12.0.1"
WIDE = 16  # of donation's rows

Reported = Callable[[Place], Sequence[Json]]


@dataclass(frozen=True)
class Attack:
    """A behaviour that is made up: where, and the steps of each process, or the fault."""

    text: str
    clause: str
    implementation: str
    topology: str
    steps: Reported = lambda place: ()
    jax: str = NEWEST
    fault: Fault | None = None
    outputs: tuple[str, ...] = ()  # in place of the implementation's own


def doubled(place: Place, *shape: int) -> Any:
    """Return the result of most probes."""
    return place.rows(*shape) * 2


def moved(**other: Any) -> Json:
    """Return the note of an access without communication."""
    return {
        "collectives": {},
        "bytes": 0,
        "result": 48,
        "array": 384,
        "host": False,
        "gather": False,
        "programs": 1,
        "loops": False,
        "runs": 1,
    } | other


def no_lower(place: Place) -> Sequence[Json]:
    """The bare stage cannot be had any more."""
    gone = {"type": "AttributeError", "message": "'pmap' object has no attribute 'lower'"}
    return (
        returned(place.all_rows(3).sum(0) + place.rows(3), name="the map itself"),
        raised(**gone, name="first call", phase="unknown"),
        raised(**gone, name="second call", phase="unknown"),
    )


def stage_of_nans(place: Place) -> Sequence[Json]:
    """The bare stage returns NaN."""
    nan = np.full((place.topology.devices_per_process, 3), np.nan, np.float32)
    return (
        returned(place.all_rows(3).sum(0) + place.rows(3), name="the map itself"),
        returned(nan, name="first call"),
        returned(nan, name="second call"),
    )


def body_cannot_be_imported(place: Place) -> Sequence[Json]:
    """The unchanged body dies of something else."""
    right = np.array([1, 0, 1, 0, 1, 2, 1, 2], np.int32)
    failed = {
        "type": "ImportError",
        "message": "cannot import name 'argmax'",
        "phase": "unknown",
    }
    noted = {"extra": {"rank outcome": "error"}}
    return (
        raised(**failed, name="unchanged") | noted,
        raised(**failed, name="unchanged again") | noted,
        *(
            returned(right, name=name)
            for name in ("squeezed", "squeezed again", "indexed", "indexed again")
        ),
    )


def no_error_at_all(place: Place) -> Sequence[Json]:
    """Return steps that do not raise the expected error."""
    return (
        returned(doubled(place, 8) * 1.5, name="mistaken call"),
        returned(doubled(place, 8), name="after"),
        returned(doubled(place, 8), name="after again"),
    )


def while_preparing(place: Place) -> Sequence[Json]:
    """The error that is expected, before the program under test is called."""
    message = "Received incompatible devices for jitted computation. Got argument x of f"
    return (raised(message=message, name=OUTSIDE),)


def numpy_s_own(place: Place) -> Sequence[Json]:
    """The right values, but no array of JAX's."""
    right = np.arange(1, 49, dtype=np.float32).reshape(16, 3) * 2
    return returned(right, name="first call"), returned(right, name="second call")


def gather_per_row(place: Place) -> Sequence[Json]:
    """A thousand all-gathers for each row that the loop reads."""
    much = moved(
        collectives={"all-gather": 1000}, bytes=384_000, result=384, gather=True, loops=True
    )
    rows = doubled(place, 3, 4)
    return (returned(*rows, name="access", extra={"moved": much, "programs": []}),)


def gather_of_the_rest(place: Place) -> Sequence[Json]:
    """One all-gather of 500 times the result."""
    much = moved(collectives={"all-gather": 1}, bytes=336 * 500, result=336, gather=True)
    return (returned(doubled(place, 3, 4)[1:], name="access", extra={"moved": much}),)


def reused_buffer_of_garbage(place: Place) -> Sequence[Json]:
    """A donated buffer that is passed again comes back as something else."""
    garbage = np.full_like(doubled(place, WIDE), -777)
    return (
        returned(doubled(place, WIDE), name="donating call"),
        returned(garbage, name="again"),
    )


def psum_of_garbage(place: Place) -> Sequence[Json]:
    """The sum is wrong under jit and at the top level."""
    garbage = np.full((place.topology.devices_per_process, 4), -5, np.float32)
    calls = {"most called": []}
    return (
        returned(garbage, name="top level", extra={"Python functions": 44, **calls}),
        returned(
            garbage,
            name="under jit",
            extra={"Python functions": 0, "more than under jit": 44, **calls},
        ),
    )


def five_million_calls(place: Place) -> Sequence[Json]:
    """A call runs five million Python functions."""
    calls = {"Python functions": 5_000_000, "most called": []}
    return (returned(doubled(place, 4), name="call", extra=calls),)


def unreplicated_garbage(place: Place) -> Sequence[Json]:
    """flax's unreplicate returns something else, in one process."""
    garbage = np.full((3, 4), -5, np.float32)
    return (returned(garbage, name="access", extra={"moved": moved(), "programs": []}),)


def store_empty_again(place: Place) -> Sequence[Json]:
    """The internal error of before 0.9.1 comes back."""
    error = {"type": "StoreException", "message": "Store empty", "phase": "arguments"}
    return raised(**error, name="first call"), raised(**error, name="second call")


def stitched_garbage(place: Place) -> Sequence[Json]:
    """The stitched array has the shape, and not the data."""
    garbage = np.full((2, 2), -5, np.float32)
    noted = {"extra": {"global shape": [4, 2]}}
    return (
        returned(doubled(place, 2), name="control"),
        returned(garbage, name="first call", **noted),
        returned(garbage, name="second call", **noted),
    )


def any_value_error(place: Place) -> Sequence[Json]:
    """An error of the right type, about something else."""
    return (
        returned(doubled(place, 3, 4), name="map"),
        raised(message="the moon is in the wrong phase", name="access", phase="unknown"),
    )


def stuck(step: str, *processes: int, of: int) -> tuple[Whereabouts, ...]:
    """Processes in a step, the others in none."""
    return tuple(Whereabouts(p, (), step if p in processes else "") for p in range(of))


ATTACKS = (
    Attack(
        "`.lower` no longer exists",
        "errors.lowered.several-processes-psum",
        NEW_PMAP,
        TWO,
        no_lower,
    ),
    Attack(
        "the bare stage returns NaN",
        "errors.lowered.several-processes-psum",
        NEW_PMAP,
        TWO,
        stage_of_nans,
    ),
    Attack(
        "the unchanged body dies of an ImportError",
        "rank.argmax.no-axis.1d",
        SHARD_MAP,
        ONE,
        body_cannot_be_imported,
    ),
    Attack(
        "the error after which the state is asked for never happened",
        "errors.state-after-error.outside-any-map-fresh-map",
        NEW_PMAP,
        ONE,
        no_error_at_all,
        jax="0.9.0",
    ),
    Attack(
        "a hang at the first barrier, in the one process that should have left",
        "errors.barriers.hand-made-process-missing",
        NEW_PMAP,
        FOUR,
        fault=Fault(
            Verdict.HUNG,
            "no answer within 5 s from process 3",
            ("new pmap",),
            stuck("barrier", 3, of=4),
        ),
    ),
    Attack(
        "the expected error is raised while inputs are prepared",
        "errors.incompatible-devices.outside-any-map",
        SHARD_MAP,
        ONE,
        while_preparing,
    ),
    Attack(
        "NumPy under the label of a map",
        "outputs.stack.reshape",
        SHARD_MAP,
        ONE,
        numpy_s_own,
        outputs=("ndarray",),
    ),
    Attack(
        "a thousand all-gathers per row of a loop",
        "indexing.access.loop",
        NEW_PMAP,
        ONE,
        gather_per_row,
    ),
    Attack(
        "a reused donated buffer comes back as -777",
        "donation.reuse-same-wrapper.uncommitted",
        NEW_PMAP,
        ONE,
        reused_buffer_of_garbage,
    ),
    Attack(
        "psum is wrong at the top level too",
        "indexing.top-level.psum",
        NEW_PMAP,
        FOUR,
        psum_of_garbage,
    ),
    Attack(
        "a dispatch runs five million Python functions",
        "indexing.dispatch.one",
        NEW_PMAP,
        ONE,
        five_million_calls,
    ),
    Attack(
        "a crash before any map was made",
        "donation.twice-in-one-call.both",
        SHARD_MAP,
        ONE,
        jax="0.9.2",
        fault=Fault(Verdict.CRASHED, "process 0 was killed by SIGSEGV", ()),
    ),
    Attack(
        "a compilation that is slow, in the first call",
        "donation.after-reuse.placed",
        NEW_PMAP,
        ONE,
        jax="0.9.0",
        fault=Fault(
            Verdict.HUNG,
            'no answer within 12 s from process 0; process 0 is in File "compiler.py", line 1 in f',
            ("new pmap",),
            stuck("donating call", 0, of=1),
        ),
    ),
    Attack(
        "flax's unreplicate returns garbage, in one process",
        "indexing.unreplicate.flax",
        NEW_PMAP,
        ONE,
        unreplicated_garbage,
    ),
    Attack(
        "StoreException comes back",
        "errors.context-mesh.under-set-mesh",
        NEW_PMAP,
        ONE,
        store_empty_again,
    ),
    Attack(
        "a stitched array holds garbage",
        "inputs.uneven.inferred",
        SHARD_MAP,
        TWO,
        stitched_garbage,
    ),
    Attack(
        "any ValueError whatever",
        "indexing.other-dimension.as-written",
        SHARD_MAP,
        ONE,
        any_value_error,
    ),
    Attack(
        "an all-gather of 500 times the result",
        "indexing.access.rest",
        NEW_PMAP,
        ONE,
        gather_of_the_rest,
    ),
)


def reported(attack: Attack, process: int) -> Json:
    """Return one process's observation under the attack."""
    topology = Topology.parse(attack.topology)
    witness = WITNESS[attack.implementation]
    if attack.outputs:
        witness = {**witness, "outputs": list(attack.outputs), "traced": []}
    steps = attack.steps(Place(topology, process))
    return observation(
        *steps,
        process=process,
        implementation=attack.implementation,
        topology=topology,
        jax=attack.jax,
        witness=[witness],
    )


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.text)
def test_what_is_made_up_is_red(attack: Attack) -> None:
    topology = Topology.parse(attack.topology)
    clause = catalogue().clauses[attack.clause]
    processes = range(topology.processes) if attack.fault is None else ()
    judgement = judge(
        clause,
        attack.implementation,
        topology,
        attack.jax,
        [received(reported(attack, process)) for process in processes],
        attack.fault,
        matching(
            entries(),
            attack.clause,
            attack.implementation,
            attack.jax,
            "cpu",
            attack.topology,
            PACKAGES,
        ),
    )
    assert judgement.verdict not in (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION), judgement.reason
    assert "the probe did not get there" not in judgement.reason
    assert "unchecked" not in judgement.reason


def test_the_review_s_nineteen_are_here() -> None:
    """Eighteen; of the other, a fix that is slow, no clause is judged: the time lane shows it."""
    assert len({attack.text for attack in ATTACKS}) == len(ATTACKS) == 18
    assert not any(id.startswith("errors.copy-arrays.cost") for id in catalogue().clauses)
