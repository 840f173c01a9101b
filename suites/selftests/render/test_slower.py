"""The time that a known issue costs, from the ratios that were measured beside it."""

from __future__ import annotations

import pytest
from records import Record, cell, claim, clause, target, timing
from site_pages import results_of

from reports.render.site.slower import slower
from reports.store.outcomes import CellKey


def ratio(median: float, low: float, high: float, to: str = "legacy pmap of jax==0.8.0") -> Record:
    return {
        "to": to,
        "median": median,
        "low": low,
        "high": high,
        "blocks": 3,
        "rounds": 20,
        "says": "so many times",
    }


def measured(*ratios: Record, **other: object) -> Record:
    return timing("errors.a", topology="1x8", ratios=list(ratios)) | other


def rendered(*timings: Record) -> tuple[str, ...]:
    results = results_of(
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        clause("errors.a", topologies=["1x8"]),
        cell("errors.a", topology="1x8"),
        cell("errors.a", topology="1x8", implementation="shard_map"),
        *timings,
    )
    target_key = results.targets[0].key
    cells = [CellKey("errors.a", target_key, name, "1x8") for name in ("shard_map", "new_pmap")]
    return slower(results, cells, target_key)


def test_all_sizes_are_one_line() -> None:
    (line,) = rendered(
        measured(ratio(16, 11, 21)),
        measured(ratio(55.4, 24, 57), timing="timing.index.64kib"),
    )
    assert line == (
        "index under new pmap takes 1.58 ms: "
        "16 to 55 times as long as under legacy pmap (JAX 0.8.0)"
    )


def test_what_is_within_the_spread_is_no_difference() -> None:
    assert not rendered(measured(ratio(1.4, 0.8, 2)))
    (line,) = rendered(
        measured(ratio(1.4, 0.8, 2)), measured(ratio(3, 2, 4), timing="timing.index.64kib")
    )
    assert ": 1 to 3 times " in line


@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("faster", ratio(0.5, 0.4, 0.6)),
        ("than something else", ratio(9, 8, 10, to="local shard")),
    ],
)
def test_nothing_is_said_of_what_is(name: str, one: Record) -> None:
    assert not rendered(measured(one)), name


def test_a_line_for_each_contender_and_implementation() -> None:
    some = {"contender": "call"}, {"implementation": "shard_map"}
    lines = rendered(*(measured(ratio(2, 1.5, 3)) | one for one in some))
    assert [line.partition(" takes ")[0] for line in lines] == [
        "call under new pmap",
        "index under shard_map",
    ]
