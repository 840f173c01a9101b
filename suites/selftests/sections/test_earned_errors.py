"""Wrong JAX that the clauses of `errors` must notice, as fabricated observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fabricated import judgement_of, verdict_of
from judged import crashed
from real import catalogue
from records import Record, leaf, raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec.expectation import NotApplicable
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import OUTSIDE
from conformance.spec.topology import Place, Topology

LATER = "0.13.0"
ALL_REDUCE = {"operation": "all-reduce", "shape": "f32[3]", "bytes": 12}
ERROR = ("ValueError", "Exception", "BaseException")


def verdict(id: str, implementation: str, topology: str, *steps: Any, jax: str = LATER) -> str:
    """Return the verdict on a cell: a step is a record, or a function of a process's place."""
    return verdict_of(id, implementation, Topology.parse(topology), steps, jax=jax)


def rows(name: str, factor: int = 2, *shape: int) -> Any:
    return lambda place: returned(place.rows(*shape) * factor, name=name)


def test_a_compiled_stage_that_cannot_be_made_is_no_stage_that_refuses() -> None:
    def the_map(place: Place) -> Record:
        return returned(place.rows(3) + place.all_rows(3).sum(0), name="the map itself")

    id = "errors.lowered.several-processes-psum"
    gone = [
        raised("AttributeError", "'function' object has no attribute 'lower'", name=name)
        for name in ("first call", "second call")
    ]
    assert verdict(id, NEW_PMAP, "4x2", the_map, *gone) == Verdict.DEVIATES
    nan = [
        returned(np.full((2, 3), np.nan, np.float32), name=n) for n in ("first call", "second call")
    ]
    assert verdict(id, NEW_PMAP, "4x2", the_map, *nan) == Verdict.DEVIATES


def test_an_internal_error_that_comes_back_is_not_excused() -> None:
    message = (
        "The context mesh AbstractMesh('other': 8, axis_types=(Auto,), device_kind=cpu, "
        "num_cores=None) should match the mesh passed to shard_map Mesh('i': 8, axis_types=(Auto,))"
    )
    empty = raised("StoreException", "Store empty", phase="arguments", name="second call")
    steps = (raised(message=message, phase="trace", name=FIRST), empty)
    id = "errors.context-mesh.under-set-mesh"
    assert verdict(id, NEW_PMAP, "1x8", *steps, jax="0.9.0") == Verdict.KNOWN_DEVIATION
    assert verdict(id, NEW_PMAP, "1x8", *steps) == Verdict.DEVIATES


def test_where_no_error_happened_nothing_was_asked() -> None:
    id = "errors.state-after-error.outside-any-map-fresh-map"
    assert isinstance(catalogue().clauses[id].expect[LEGACY_PMAP], NotApplicable)
    steps = [
        rows("mistaken call", 3, 8),
        rows("mistaken call again", 3, 8),
        rows("after", 2, 8),
        rows("after again", 2, 8),
    ]
    assert verdict(id, NEW_PMAP, "1x8", *steps) == Verdict.DEVIATES


def test_an_error_that_nobody_knows_is_no_cause() -> None:
    id = "errors.state-after-error.outside-any-map-fresh-map"
    steps = [
        raised("ImportError", "cannot import name 'numpy'", name="mistaken call"),
        raised("ImportError", "cannot import name 'numpy'", name="mistaken call again"),
        rows("after", 2, 8),
        rows("after again", 2, 8),
    ]
    assert verdict(id, NEW_PMAP, "1x8", *steps) == Verdict.DEVIATES


def test_an_error_while_the_inputs_are_prepared_is_not_the_documented_one() -> None:
    message = (
        "Received incompatible devices for jitted computation. Got argument a of allclose with "
        "shape float32[8,2] and with device ids [0] on platform CPU and argument b of allclose "
        "with shape float32[8,2] and with device ids [0, 1, 2, 3, 4, 5, 6, 7] on platform CPU"
    )
    id = "errors.incompatible-devices.outside-any-map"
    good = [raised(message=message, name=name) for name in ("first call", "second call")]
    assert verdict(id, SHARD_MAP, "1x8", *good) == Verdict.CONFORMS
    outside = raised(message=message, name=OUTSIDE)
    assert verdict(id, SHARD_MAP, "1x8", outside) == Verdict.DEVIATES
    bare = [raised(message="Received incompatible devices", name=n) for n in (FIRST, SECOND)]
    assert verdict(id, SHARD_MAP, "1x8", *bare) == Verdict.DEVIATES


FIRST, SECOND = "first call", "second call"


def test_a_remedy_is_judged_by_what_it_moves_and_no_stopwatch() -> None:
    assert not [id for id in catalogue().clauses if id.startswith("errors.copy-arrays.cost")]
    one = {"type": "SingleDeviceSharding", "devices": [0]}
    id = "errors.copy-arrays.fix-addressable-shards"

    def steps(collectives: list[Record], sharding: Record) -> list[Any]:
        first = np.arange(1, 4, dtype=np.float32)[None] * 2
        local = leaf(first, sharding=sharding)
        programs = {"programs": [{"name": "jit_fn", "collectives": collectives}]}
        return [
            returned(first[0], name="without the fix"),
            returned(local, name="from empty caches", extra=programs),
            returned(local, name=FIRST),
            returned(local, name=SECOND),
        ]

    assert verdict(id, NEW_PMAP, "1x8", *steps([], one)) == Verdict.CONFORMS
    assert verdict(id, NEW_PMAP, "1x8", *steps([ALL_REDUCE], one)) == Verdict.DEVIATES
    spread = one | {"devices": [0, 1]}
    assert verdict(id, NEW_PMAP, "1x8", *steps([], spread)) == Verdict.DEVIATES


def test_a_fix_says_whether_there_was_anything_to_fix() -> None:
    id = "errors.incompatible-devices.fix-device-put"
    fixed = [rows(FIRST, 2, 2), rows(SECOND, 2, 2)]
    nothing = judgement_of(
        id, NEW_PMAP, Topology(1, 8), [rows("without the fix", 2, 2), *fixed], jax=LATER
    )
    assert nothing.verdict == Verdict.CONFORMS
    assert "nothing to fix" in nothing.reason
    assert verdict(id, NEW_PMAP, "1x8", rows("without the fix", 3, 2), *fixed) == Verdict.DEVIATES
    unknown = raised("NameError", "name 'on_mesh' is not defined", name="without the fix")
    assert verdict(id, NEW_PMAP, "1x8", unknown, *fixed) == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("sums", "expected"), [(None, Verdict.KNOWN_DEVIATION), (7, Verdict.DEVIATES)]
)
def test_paired_collectives_give_that_wrong_number_and_no_other(
    sums: int | None, expected: str
) -> None:
    def met(place: Place, half: int) -> Record:
        value = place.all_rows().reshape(2, 2)[half].sum() + 2 if sums is None else sums
        return returned(np.full(2, value, np.float32), name="to be named")

    def program(place: Place) -> Record:
        return met(place, place.process % 2) | {"name": "program"}

    def barrier(place: Place) -> Record:
        return met(place, 1 - place.process % 2) | {"name": "barrier"}

    id = "errors.barriers.hand-made-swapped"
    assert verdict(id, NEW_PMAP, "2x2", program, barrier) == expected


def test_a_map_that_synchronises_where_legacy_did_not_is_seen() -> None:
    id = "errors.barriers.map-without-collective"

    def steps(first: bool, collectives: list[Record]) -> list[Any]:
        alone = {"returned before the last began": first}

        def calls(place: Place) -> list[Record]:
            doubled = place.rows(2) * 2
            programs = {"programs": [{"name": "jit", "collectives": collectives}]}
            return [
                returned(doubled, name="from empty caches", extra=programs),
                returned(doubled, name="second call", extra=alone),
                returned(doubled, name="third call", extra=alone),
            ]

        return [lambda place, at=at: calls(place)[at] for at in range(3)]

    assert verdict(id, NEW_PMAP, "2x2", *steps(True, [])) == Verdict.CONFORMS
    assert verdict(id, NEW_PMAP, "2x2", *steps(False, [])) == Verdict.DEVIATES
    assert verdict(id, NEW_PMAP, "2x2", *steps(True, [ALL_REDUCE])) == Verdict.DEVIATES


def test_rows_of_a_range_that_move_otherwise_are_not_excused() -> None:
    id = "errors.copy-arrays.fix-static-range"
    everywhere = {"type": "NamedSharding", "spec": [], "mesh": {"i": 8}, "devices": list(range(8))}

    def steps(operation: str) -> list[Any]:
        listed = list(np.arange(1, 25, dtype=np.float32).reshape(8, 3) * 2)
        leaves = [leaf(row, sharding=everywhere) for row in listed]
        moved = ALL_REDUCE | {"operation": operation}
        still = [{"name": "jit", "collectives": []}] * 3
        programs = {"programs": [{"name": "jit", "collectives": [moved]}, *still]}
        return [
            returned(*leaves, name="without the fix"),
            returned(*leaves, name="from empty caches", extra=programs),
            returned(*leaves, name=FIRST),
            returned(*leaves, name=SECOND),
        ]

    assert verdict(id, NEW_PMAP, "1x8", *steps("all-reduce")) == Verdict.KNOWN_DEVIATION
    assert verdict(id, NEW_PMAP, "1x8", *steps("all-gather")) == Verdict.DEVIATES


def test_a_hang_at_the_first_barrier_is_not_the_one_that_is_expected() -> None:
    id, again = "errors.barriers.hand-made-process-missing", "barrier again"
    for in_steps, expected in (
        ((again, again, again, ""), Verdict.CONFORMS),
        (("barrier", "barrier", "barrier", "barrier"), Verdict.HUNG),
        (("", "", "", "barrier"), Verdict.HUNG),
        (("", "", "", again), Verdict.HUNG),
    ):
        there = tuple(Whereabouts(p, (), name) for p, name in enumerate(in_steps))
        fault = Fault(Verdict.HUNG, "no answer within 5 s", ("new pmap",), there)
        assert verdict_of(id, NEW_PMAP, Topology(4, 2), jax=LATER, fault=fault) == expected


def test_a_crash_in_the_first_call_is_not_the_known_one() -> None:
    id = "errors.incompatible-devices.other-order"
    for step, expected in ((SECOND, Verdict.KNOWN_DEVIATION), (FIRST, Verdict.CRASHED)):
        fault = crashed(step, "new pmap")
        assert verdict_of(id, NEW_PMAP, Topology(1, 8), jax="0.9.2", fault=fault) == expected
