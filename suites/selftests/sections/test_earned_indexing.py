"""Wrong JAX that the clauses on indexing must notice: other communication, functions or results.

Each case is a fabricated observation, judged with the real clause and the real deviation entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fabricated import Cell, check, verdict_of
from records import raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec.names import NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology

ONE, FOUR = Topology(1, 8), Topology(4, 2)
ROW = (3, 4)


def moved(**other: Any) -> dict[str, Any]:
    """Return the note of an access: one all-reduce of a row."""
    facts = {"collectives": {"all-reduce": 1}, "runs": 1, "bytes": 48, "result": 48, "array": 384}
    return {"moved": facts | {"host": False, "gather": True, "programs": 1} | other}


def rows_doubled(place: Place) -> Any:
    return place.rows(*ROW) * 2


@pytest.mark.parametrize(
    ("count", "expected"),
    [pytest.param(1, Verdict.CONFORMS, id="one"), pytest.param(1000, Verdict.DEVIATES)],
)
def test_a_loop_may_move_each_row_once(count: int, expected: str) -> None:
    facts = moved(
        collectives={"all-gather": count},
        runs=8,
        bytes=8 * 48 * count,
        result=384,
    )

    def steps(place: Place) -> Any:
        return [returned(*rows_doubled(place), name="access", extra=facts)]

    assert verdict_of("indexing.access.loop", NEW_PMAP, ONE, steps) == expected


@pytest.mark.parametrize(
    ("bytes_", "expected"),
    [
        pytest.param(384, Verdict.KNOWN_DEVIATION, id="as known"),
        pytest.param(500 * 336, Verdict.DEVIATES),
    ],
)
def test_an_entry_excuses_the_bytes_that_were_measured(bytes_: int, expected: str) -> None:
    facts = moved(collectives={"all-gather": 1}, bytes=bytes_, result=336, gather=True)

    def steps(place: Place) -> Any:
        return [returned(rows_doubled(place)[1:], name="access", extra=facts)]

    assert verdict_of("indexing.access.rest", NEW_PMAP, ONE, steps) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(20, Verdict.KNOWN_DEVIATION, id="as known"),
        pytest.param(5_000_000, Verdict.DEVIATES),
    ],
)
def test_an_entry_excuses_about_as_many_functions_as_were_counted(
    count: int, expected: str
) -> None:
    extra = {"Python functions": count}

    def steps(place: Place) -> Any:
        return [returned(place.rows(4) * 2, name="call", extra=extra)]

    assert verdict_of("indexing.dispatch.one", NEW_PMAP, ONE, steps) == expected


def test_a_psum_that_is_wrong_everywhere_is_red() -> None:
    def steps(place: Place) -> Any:
        garbage = np.full((place.topology.devices_per_process, 4), -5, np.float32)
        counts = {"Python functions": 44, "most called": []}
        inside = counts | {"Python functions": 0, "more than under jit": 44}
        return [
            returned(garbage, name="top level", extra=counts),
            returned(garbage, name="under jit", extra=inside),
        ]

    check(Cell("indexing.top-level.psum", NEW_PMAP, FOUR, steps))


def summed(place: Place, rows: Any) -> Any:
    return np.broadcast_to(rows.sum(0), place.rows(4).shape)


@pytest.mark.parametrize(
    ("at_the_top", "under_jit", "expected"),
    [
        pytest.param("all", "own", Verdict.KNOWN_DEVIATION, id="as known"),
        pytest.param("own", "own", Verdict.DEVIATES, id="wrong at the top level too"),
        pytest.param("all", "garbage", Verdict.DEVIATES, id="garbage under jit"),
    ],
)
def test_a_psum_under_jit_is_excused_where_it_is_the_processs_own(
    at_the_top: str, under_jit: str, expected: str
) -> None:
    def steps(place: Place) -> Any:
        sums = {
            "all": summed(place, place.all_rows(4)),
            "own": summed(place, place.rows(4)),
            "garbage": place.rows(4) * 7 - 3,
        }
        return [
            returned(sums[at_the_top], name="top level"),
            returned(sums[under_jit], name="under jit"),
            returned(sums[under_jit], name="again under jit"),
        ]

    assert verdict_of("indexing.under-jit.psum", NEW_PMAP, FOUR, steps) == expected


@pytest.mark.parametrize("implementation", [NEW_PMAP, SHARD_MAP])
def test_flaxs_unreplicate_is_not_excused_where_it_returns_garbage(implementation: str) -> None:
    facts = moved(collectives={}, bytes=0, gather=False)

    def right(place: Place) -> Any:
        return [returned(rows_doubled(place)[0], name="access", extra=facts)]

    def garbage(place: Place) -> Any:
        return [returned(rows_doubled(place)[0] - 999, name="access", extra=facts)]

    id = "indexing.unreplicate.flax"
    assert verdict_of(id, implementation, ONE, right) == Verdict.KNOWN_DEVIATION
    assert verdict_of(id, implementation, ONE, garbage) == Verdict.DEVIATES
    assert verdict_of(id, implementation, FOUR, garbage) == Verdict.DEVIATES


def test_another_error_than_the_indivisible_dimension_is_not_excused() -> None:
    def steps(place: Place) -> Any:
        return [
            returned(rows_doubled(place), name="map"),
            raised("ValueError", "something else altogether", name="access"),
        ]

    assert (
        verdict_of("indexing.other-dimension.as-written", SHARD_MAP, ONE, steps) == Verdict.DEVIATES
    )


@pytest.mark.parametrize(
    ("gathers", "expected"),
    [
        pytest.param(True, Verdict.CONFORMS, id="seen"),
        pytest.param(False, Verdict.DEVIATES, id="renamed"),
    ],
)
def test_that_no_gather_runs_says_nothing_where_the_control_has_none(
    gathers: bool, expected: str
) -> None:
    none = moved(collectives={}, bytes=0, gather=False)

    def steps(place: Place) -> Any:
        rows = rows_doubled(place)
        return [
            returned(rows[0], name="control", extra=moved(gather=gathers)),
            returned(place.all_rows(*ROW).sum(0) * 2, name="replicated output", extra=none),
            returned(rows[0], name="local shard", extra=none),
        ]

    assert verdict_of("indexing.remedies.no-gather", NEW_PMAP, ONE, steps) == expected
