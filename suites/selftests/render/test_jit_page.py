"""The page on pmap, shard_map and plain jit: made from the notes of a results file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records import (
    Record,
    cell,
    claim,
    clause,
    observation,
    raised,
    sample_step,
    target,
    timing,
    write,
)

from reports.render.site.jitted import JitPage, jit_page
from reports.store.results import load

MAPPED, JITTED = "idioms.training.pmean", "idioms.jit.descent"
LARGE, LARGE_JITTED = "idioms.memory.kept", "idioms.jit-memory.kept"
EVALUATED, EVALUATED_JITTED = "idioms.evaluation.gathered", "idioms.jit.gathered"
AT_SIZE, AT_SIZE_JITTED = "idioms.at-size.bias", "idioms.jit-at-size.bias"
SUFFIX = ".no-new-collective"
OF_JAX = {"jax": "returns the model's values"}
HEAD = [
    target("0.9.2"),
    target("0.12.0"),
    claim("migrate-pmap.errors"),
    *(
        clause(one)
        for one in (MAPPED, f"{MAPPED}{SUFFIX}", EVALUATED, f"{EVALUATED}{SUFFIX}", AT_SIZE, LARGE)
    ),
    *(
        clause(one, expected=OF_JAX)
        for one in (
            JITTED,
            f"{JITTED}{SUFFIX}",
            EVALUATED_JITTED,
            f"{EVALUATED_JITTED}{SUFFIX}",
            AT_SIZE_JITTED,
            LARGE_JITTED,
        )
    ),
]


def ran(id: str, implementation: str, note: Any, key: str = "moved", jax: str = "0.12.0") -> Record:
    seen = [observation(sample_step(extra={key: note}))]
    return cell(
        id,
        implementation=implementation,
        target=f"jax=={jax}",
        verdict="conforms",
        observations=seen,
    )


def moves(id: str, implementation: str, collectives: Any, jax: str = "0.12.0") -> list[Record]:
    note = {"collectives": collectives}
    return [ran(one, implementation, note, jax=jax) for one in (id, f"{id}{SUFFIX}")]


def page_of(folder: Path, *cells: Record) -> JitPage:
    return jit_page(load([write(folder / "r.jsonl", [*HEAD, *cells])]))


def test_each_implementation_is_shown_in_the_newest_jax_that_has_it(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        *moves(MAPPED, "legacy_pmap", {"all-reduce": 16}, "0.9.2"),
        *moves(MAPPED, "new_pmap", {"all-reduce": 99}, "0.9.2"),
        *moves(MAPPED, "new_pmap", {"all-reduce": 16}),
        *moves(JITTED, "jax", {"all-reduce": 12, "all-gather": 4}),
    )
    (group,) = page.communication
    (row,) = group.rows
    legacy, new, shard_map, jit = row.entries
    assert legacy is not None
    assert (legacy.text, legacy.jax) == ("all-reduce 16 B", "0.9.2")
    assert new is not None
    assert (new.text, new.jax) == ("all-reduce 16 B", "0.12.0")
    assert shard_map is None
    assert jit is not None
    assert jit.text == "all-gather 4 B, all-reduce 12 B"


def test_a_step_that_communicates_nothing_says_so(tmp_path: Path) -> None:
    page = page_of(tmp_path, *moves(MAPPED, "new_pmap", {}), *moves(JITTED, "jax", {}))
    (group,) = page.communication
    (row,) = group.rows
    assert [one and one.text for one in row.entries] == [None, "nothing", None, "nothing"]


def test_patterns_stand_under_their_subjects(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        *moves(JITTED, "jax", {}),
        *moves(EVALUATED_JITTED, "jax", {}),
    )
    assert [(one.subject, len(one.rows)) for one in page.communication] == [
        ("Training", 1),
        ("Evaluation", 1),
    ]


def on(topology: str, *cells: Record) -> list[Record]:
    return [one | {"topology": topology} for one in cells]


def rows_of(folder: Path, *cells: Record) -> list[tuple[str, int]]:
    both = {"topologies": ["1x8", "2x2"]}
    of_jax = both | {"expected": OF_JAX}
    head = [
        clause(MAPPED, **both),
        clause(JITTED, **of_jax),
        clause(f"{JITTED}{SUFFIX}", **of_jax),
    ]
    (group,) = page_of(folder, *head, *cells).communication
    return [(row.topology, row.span) for row in group.rows]


def test_topologies_of_equal_entries_are_one_row(tmp_path: Path) -> None:
    both = [on(one, *moves(JITTED, "jax", {})) for one in ("1x8", "2x2")]
    assert rows_of(tmp_path, *both[0], *both[1]) == [("1x8, 2x2", 1)]


def test_the_rows_of_a_pattern_have_its_name_once(tmp_path: Path) -> None:
    one = on("1x8", *moves(JITTED, "jax", {"all-gather": 32}))
    two = on("2x2", *moves(JITTED, "jax", {"all-gather": 16}))
    assert rows_of(tmp_path, *one, *two) == [("1x8", 2), ("2x2", 0)]


def test_a_topology_that_the_map_does_not_have_is_left_out(tmp_path: Path) -> None:
    cells = [one for each in ("1x8", "2x2") for one in on(each, *moves(JITTED, "jax", {}))]
    of_jax = {"topologies": ["1x8", "2x2"], "expected": OF_JAX}
    head = [
        clause(MAPPED, topologies=["2x2"]),
        clause(JITTED, **of_jax),
        clause(f"{JITTED}{SUFFIX}", **of_jax),
    ]
    (group,) = page_of(tmp_path, *head, *cells).communication
    assert [row.topology for row in group.rows] == ["2x2"]


def test_a_column_names_its_newest_jax(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        *moves(MAPPED, "legacy_pmap", {}, "0.9.2"),
        *moves(MAPPED, "new_pmap", {}, "0.9.2"),
        *moves(EVALUATED, "new_pmap", {}),
        *moves(JITTED, "jax", {}),
        *moves(EVALUATED_JITTED, "jax", {}),
    )
    assert page.newest == ("0.9.2", "0.12.0", "", "0.12.0")


def test_what_raised_or_is_not_tested_for_communication_says_how_it_ended(tmp_path: Path) -> None:
    refused = [observation(raised())]
    page = page_of(
        tmp_path,
        cell(MAPPED, implementation="shard_map", target="jax==0.12.0", observations=refused),
        ran(MAPPED, "new_pmap", {"collectives": {"all-reduce": 16}}),
        *moves(JITTED, "jax", {}),
    )
    (group,) = page.communication
    _, new, shard_map, _ = group.rows[0].entries
    assert new is not None
    assert new.text == "all-reduce 16 B"
    assert shard_map is not None
    assert shard_map.text == "raises ValueError"


def test_at_size_a_row_says_how_it_ended(tmp_path: Path) -> None:
    page = page_of(tmp_path, ran(AT_SIZE_JITTED, "jax", None))
    (group,) = page.at_size
    (row,) = group.rows
    assert row.entries[-1] is not None
    assert row.entries[-1].text == "returns"


def test_without_a_plain_jit_there_is_no_row(tmp_path: Path) -> None:
    assert page_of(tmp_path, *moves(MAPPED, "new_pmap", {})).communication == ()


def test_memory_is_in_multiples_of_the_state(tmp_path: Path) -> None:
    notes = {"what": "a state", "multiple": 2.04}, {"what": "a state, jit", "multiple": 1.0}
    page = page_of(
        tmp_path,
        ran(LARGE, "new_pmap", notes[0], "memory"),
        ran(LARGE_JITTED, "jax", notes[1], "memory"),
    )
    (group,) = page.memory
    (row,) = group.rows
    assert [one and one.text for one in row.entries] == [
        None,
        "2.0 x the state",
        None,
        "1.0 x the state",
    ]


def timed(jax: str, implementation: str, median: float | None) -> list[Record]:
    """Both contenders of a pattern: the map takes `median` times as long; None: wrong values."""
    both: Any = {
        "timing": "timing.pattern.training-pmean",
        "implementation": implementation,
        "target": f"jax=={jax}",
        "topology": "1x2",
        "illustrates": [MAPPED, JITTED],
    }
    ratio = {
        "to": "plain jit",
        "median": median,
        "low": 0.25,
        "high": 9.0,
        "blocks": 6,
        "rounds": 9,
    }
    wrong = {"seconds": None, "ratios": [], "rounds": 0, "failed": "known deviation: wrong values"}
    mapped = wrong if median is None else {"ratios": [ratio | {"says": "longer"}]}
    own = wrong if median is None else {"ratios": [], "seconds": SECONDS}
    return [
        timing(MAPPED, **both, **mapped, contender="mapped"),
        timing(MAPPED, **both, **own, contender="plain jit"),
    ]


SECONDS = {"median": 8e-4, "low": 7e-4, "high": 9e-4}


def test_a_steps_time_is_in_multiples_of_the_plain_jits(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        *timed("0.9.2", "legacy_pmap", 0.5),
        *timed("0.9.2", "new_pmap", 7.0),
        *timed("0.12.0", "new_pmap", 1.5),
        *timed("0.12.0", "shard_map", None),
    )
    (group,) = page.time
    assert group.subject == "Training"
    (row,) = group.rows
    assert [one and (one.text, one.jax) for one in row.entries] == [
        ("0.50 (0.25 to 9.00)", "0.9.2"),
        ("1.50 (0.25 to 9.00)", "0.12.0"),
        ("not timed", "0.12.0"),
        ("800 µs", "0.12.0"),
    ]


def test_a_training_step_of_realistic_size_comes_first(tmp_path: Path) -> None:
    small = timed("0.12.0", "new_pmap", 1.5)
    large = [one | {"timing": "timing.jit.step", "topology": "1x8"} for one in small]
    page = page_of(tmp_path, *small, *large)
    assert [(one.subject, one.rows[0].topology) for one in page.time] == [
        ("1 MiB on each device", "1x8"),
        ("Training", "1x2"),
    ]


def test_the_summary_counts_rows_and_ratios(tmp_path: Path) -> None:
    notes = {"what": "a state", "multiple": 3.0}, {"what": "a state, jit", "multiple": 1.5}
    page = page_of(
        tmp_path,
        *moves(MAPPED, "new_pmap", {"all-reduce": 32}),
        *moves(JITTED, "jax", {"all-reduce": 16}),
        *moves(EVALUATED, "new_pmap", {}),
        *moves(EVALUATED_JITTED, "jax", {"all-gather": 4}),
        ran(LARGE, "new_pmap", notes[0], "memory"),
        ran(LARGE_JITTED, "jax", notes[1], "memory"),
        *timed("0.12.0", "new_pmap", 0.5),
    )
    assert {name: (new, jit) for name, (_, new, _, jit) in page.summary} == {
        "Rows with the expected values": ("2 of 2", "2 of 2"),
        "Rows that communicate more than plain jit": ("1", "0"),
        "Rows that communicate less than plain jit": ("1", "0"),
        "Memory at the peak, in multiples of plain jit's": ("2.0 (2.0 to 2.0)", "1.0 (1.0 to 1.0)"),
        "Time of a step at realistic sizes, in multiples of plain jit's": ("", ""),
        "Time of a step of a few elements, in multiples of plain jit's": (
            "0.5 (0.5 to 0.5)",
            "1.0 (1.0 to 1.0)",
        ),
    }
    assert all(legacy == "" for _, (legacy, *_) in page.summary)
