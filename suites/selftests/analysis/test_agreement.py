"""`reports agreement`: what differs between implementations, and what explains it."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from compared_cells import ENTRY, HEAD, OTHER, SAME, array, run, spread
from packaging.specifiers import SpecifierSet
from records import (
    FIRST,
    SECOND,
    Record,
    cell,
    clause,
    deviation,
    fault,
    finding,
    observation,
    raised,
    target,
    write,
)

from conformance.catalogue.causes import load_causes
from conformance.catalogue.claims import load_claims
from conformance.model.records import Cell
from harness.commandline.main import main
from reports.analysis.comparing.agreement import Agreement, Found, Sort, agree
from reports.analysis.comparing.changes import CompareError
from reports.analysis.comparing.entries import FILE, Entry, EntryError, load_entries, within
from reports.analysis.comparing.fields import FIELDS, Difference, compare_cells
from reports.render.text.agreement import as_json, as_text
from reports.store.results import load


def differences(one: Record, other: Record) -> list[tuple[str, str, str]]:
    """Return the differences between two steps: the field, the old and the new value."""
    cells = []
    for step in (one, other):
        record = run("new_pmap", step)
        record.pop("kind")
        cells.append(msgspec.convert(record, Cell))
    return [(d.field, d.old, d.new) for d in compare_cells(*cells).differences]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (array(), array(), []),
        (
            array(),
            raised(name=SECOND),
            [("outcome", "returned", "absent"), ("outcome", "absent", "raised")],
        ),
        (
            array(),
            raised(name=FIRST),
            [("outcome", "returned", "raised")],
        ),
        (
            raised(),
            raised(type="TypeError"),
            [("error type", "ValueError", "TypeError")],
        ),
        (
            raised(),
            raised(phase="execute"),
            [("error phase", "lower", "execute")],
        ),
        (
            raised(message="at 0x7f, 3 'a'"),
            raised(message="at 0x8e, 4 'b'"),
            [],
        ),
        (
            raised(message="no"),
            raised(message="not"),
            [("error text", "no", "not")],
        ),
        (array(), array(dtype="int32"), [("dtype", "float32", "int32")]),
        (array(), array(weak_type=True), [("weak type", "false", "true")]),
        (array(), array(committed=False), [("committed", "true", "false")]),
        (array(), array(type="ndarray"), [("kind of value", "Array", "ndarray")]),
        (
            array(),
            array(shape=[2, 2]),
            [("shape", "all processes' rows", "this process's rows")],
        ),
        (
            array(),
            array(shape=[8, 2, 1], local_shape=[2, 2, 1]),
            [("shape", "rank 2", "rank 3")],
        ),
        (
            array(),
            array(shape=[8, 3], local_shape=[2, 3]),
            [("shape", "a size", "more along axis 1")],
        ),
        (
            array(),
            array(values=[1.0, 2.0, 3.5, "nan"]),
            [("values", "values", "other values")],
        ),
        (
            array(values=[1.0, 2.0, 3.0, 4.0]),
            array(values=[1.0, 2.0, 3.0, 4.0000005]),
            [("values", "values", "equal but for rounding")],
        ),
        (
            array(values=[1, 2, 3, 4], dtype="int32"),
            array(values=[1, 2, 3, 5], dtype="int32"),
            [("values", "values", "other values")],
        ),
        (array(), array(values=[1.0, 2.0, 3.0, 4.0]), [("values", "values", "other values")]),
        (
            spread(type="PmapSharding", spec="ShardingSpec((Chunked(8), NoSharding()), ())"),
            spread(spec=["i"]),
            [("sharding kind", "PmapSharding", "NamedSharding")],
        ),
        (
            spread(spec=["i"]),
            spread(spec=[None, "i"]),
            [("sharding spec", "split along axis 0", "split along axis 1")],
        ),
        (spread(), spread(memory_kind="host"), [("memory kind", "device", "host")]),
        (spread(), spread(devices=[0]), [("device order", "more devices", "one device")]),
        (
            spread(devices=[0, 1]),
            spread(devices=[1, 0]),
            [("device order", "devices", "the same in another order")],
        ),
        (
            array(),
            array() | {"warnings": [{"category": "W", "message": "jit(f)", "count": 1}]},
            [("warnings", "none", "W: jit(…)")],
        ),
        (
            array() | {"extra": {"donated deleted": [True, True]}},
            array() | {"extra": {"donated deleted": [True, False]}},
            [("deleted inputs", "donated deleted: true", "donated deleted: false and true")],
        ),
        (
            array() | {"extra": {"programs": [{"collectives": []}]}},
            array() | {"extra": {"programs": [{"collectives": [{"operation": "all-gather"}]}]}},
            [("collectives", "none", "all-gather")],
        ),
        (
            array() | {"name": "second call", "compiled": 0},
            array() | {"name": "second call", "compiled": 2},
            [("compiles", "nothing", "something")],
        ),
        (array() | {"compiled": 0}, array() | {"compiled": 2}, []),
        (array(), array() | {"compiled": 2}, []),
    ],
)
def test_two_steps_are_compared_field_by_field(
    one: Record, other: Record, found: list[tuple[str, str, str]]
) -> None:
    assert differences(one, other) == found
    assert {field for field, _, _ in found} <= set(FIELDS)


def test_the_same_change_in_every_process_is_one() -> None:
    cells = []
    for dtype in ("float32", "int32"):
        record = cell("errors.a") | {
            "observations": [observation(array(dtype=dtype), process=p) for p in range(4)]
        }
        record.pop("kind")
        cells.append(msgspec.convert(record, Cell))
    assert len(compare_cells(*cells).differences) == 1


@pytest.fixture
def agreed(tmp_path: Path) -> Any:
    """Compare the implementations in these records, with these entries."""

    def compare(records: list[Record], *entries: Entry, **options: Any) -> Agreement:
        return agree(load([write(tmp_path / "results", records)]), entries, **options)

    return compare


def only(done: Agreement) -> Found:
    (found,) = done.found.values()
    return found


def entry(**other: Any) -> Entry:
    return Entry(
        **{
            "field": ("dtype",),
            "old": "float32",
            "new": "*",
            "says": "It is so.",
            "review": datetime.date(2027, 3, 1),
        }
        | other
    )


def test_an_undocumented_difference_is_new(agreed: Any) -> None:
    done = agreed([*HEAD, run("legacy_pmap", array()), run("new_pmap", OTHER)])
    assert [one.shape for one in done.new] == [
        ("dtype", "float32", "int32", ("legacy_pmap", "new_pmap"))
    ]
    ((pair, counts),) = ((p, c) for p, c in done.pairs.items() if c.cells)
    assert pair == ("legacy_pmap", "0.9.0", "new_pmap", "0.9.0")
    assert (counts.cells, counts.without) == (1, 0)
    assert counts.differ == {Sort.UNDOCUMENTED: 1}
    assert counts.same["shape"] == 1


def test_identical_differences_are_one(agreed: Any) -> None:
    cells = [
        run(name, step, id=id)
        for id in ("errors.a", "errors.b")
        for name, step in (("legacy_pmap", array()), ("new_pmap", OTHER))
    ]
    assert only(agreed([*HEAD, *cells])).clauses == ("errors.a", "errors.b")


def test_where_other_things_are_expected_it_is_documented(agreed: Any) -> None:
    head = [*HEAD[:3], clause("errors.a", expected=SAME | {"new_pmap": "returns int32"})]
    found = only(agreed([*head, run("legacy_pmap", array()), run("new_pmap", OTHER)]))
    assert (found.sort, found.by) == (Sort.DOCUMENTED, "migrate-pmap.errors")


def test_a_step_that_does_not_hold_is_not_as_documented(agreed: Any) -> None:
    head = [*HEAD[:3], clause("errors.a", expected=SAME | {"new_pmap": "returns int32"})]
    wrong = {"verdict": "deviates", "findings": [finding(step=FIRST)]}
    assert only(
        agreed([*head, run("legacy_pmap", array()), run("new_pmap", OTHER, **wrong)])
    ).is_new
    assert only(
        agreed([*head, run("legacy_pmap", array(), **wrong), run("new_pmap", OTHER)])
    ).is_new


def test_what_an_entry_excuses_differs_by_its_cause(agreed: Any) -> None:
    excused = run(
        "new_pmap",
        OTHER,
        verdict="known deviation",
        findings=[finding(step=FIRST)],
        deviation=deviation(cause="a-cause"),
    )
    found = only(agreed([*HEAD, run("legacy_pmap", array()), excused]))
    assert (found.sort, found.by) == (Sort.BY_CAUSE, "a-cause")


def test_a_cause_explains_only_the_step_that_it_is_seen_in(agreed: Any) -> None:
    excused = run(
        "new_pmap",
        OTHER,
        verdict="known deviation",
        findings=[finding(step="another step")],
        deviation=deviation(cause="a-cause"),
    )
    assert only(agreed([*HEAD, run("legacy_pmap", array()), excused])).is_new


def test_what_a_remedy_shows_without_it_is_documented_by_what_it_remedies(agreed: Any) -> None:
    head = [
        *HEAD,
        clause("errors.wrong", claim="migrate-pmap.fixed"),
        clause("errors.fix", expected=SAME, fixes="errors.wrong"),
    ]
    shown = [
        run(name, step | {"name": "without the fix"}, id="errors.fix")
        for name, step in (("legacy_pmap", array()), ("new_pmap", raised(name=SECOND)))
    ]
    found = only(agreed([*head, *shown]))
    assert (found.sort, found.by) == (Sort.DOCUMENTED, "migrate-pmap.fixed")


@pytest.mark.parametrize(
    ("says", "sort", "by"),
    [
        ({"claim": "migrate-pmap.errors"}, Sort.DOCUMENTED, "migrate-pmap.errors"),
        ({"cause": "a-cause"}, Sort.BY_CAUSE, "a-cause"),
        ({"same": True}, Sort.SAME, "It is so."),
        ({}, Sort.UNDOCUMENTED, ""),
    ],
)
def test_an_entry_says_what_a_difference_is(
    agreed: Any, says: dict[str, Any], sort: Sort, by: str
) -> None:
    done = agreed([*HEAD, run("legacy_pmap", array()), run("new_pmap", OTHER)], entry(**says))
    found = only(done)
    assert (found.sort, found.by, found.is_new) == (sort, by, False)
    assert done.unused == []


@pytest.mark.parametrize(
    "other",
    [
        {"field": ("shape",)},
        {"old": "int*"},
        {"new_in": ("shard_map",)},
        {"clause": ("errors.b",)},
        {"topology": ("2x*",)},
        {"jax": "<0.9"},
    ],
)
def test_an_entry_that_matches_nothing_is_told(agreed: Any, other: dict[str, Any]) -> None:
    cells = [run("legacy_pmap", array()), run("new_pmap", OTHER)]
    done = agreed([*HEAD, *cells], entry(**other))
    assert only(done).is_new
    assert done.unused == [entry(**other)]
    assert [line for line in as_text(done).splitlines() if line.endswith(f": {entry().says}")]


def test_text_of_an_entry_is_no_pattern_but_for_its_stars() -> None:
    difference = Difference("", "dtype", "float32[8]", "a.b")
    at = (("legacy_pmap", "new_pmap"), "errors.a", "1x8", "0.9.0")
    assert entry(old="float32[8]", new="a.*").matches(difference, *at)
    assert not entry(old="float32[8]", new="a+b").matches(difference, *at)
    assert not entry(old="float32.8.", new="*").matches(difference, *at)


def test_a_cause_of_a_fault_explains_whatever_else_differs(agreed: Any) -> None:
    died = {"fault": fault("crashed")}
    one = run("legacy_pmap", array(), verdict="crashed", **died)
    known = {"verdict": "known deviation", "deviation": deviation(cause="a-cause")}
    found = only(agreed([*HEAD, one, run("new_pmap", OTHER, **died, **known)]))
    assert (found.shape.field, found.sort) == ("dtype", Sort.BY_CAUSE)


def test_legacy_pmap_of_another_platform_is_no_reference(agreed: Any) -> None:
    later = {"target": "jax==0.10.0"}
    cells = [run("legacy_pmap", array()), run("new_pmap", OTHER, **later)]
    assert agreed([target("0.10.0"), *HEAD, *cells]).new
    with pytest.raises(CompareError, match="nothing can"):
        agreed([target("0.10.0", platform="gpu"), *HEAD, *cells])


LATER = [target("0.10.0"), target("0.9.2"), *HEAD]


def test_a_later_jax_is_compared_with_the_last_legacy_that_conforms(agreed: Any) -> None:
    cells = [
        run("legacy_pmap", array()),
        run("legacy_pmap", OTHER, verdict="deviates", target="jax==0.9.2"),
        run("new_pmap", OTHER, target="jax==0.10.0"),
    ]
    done = agreed([*LATER, *cells])
    assert [pair for pair, counts in done.pairs.items() if counts.cells] == [
        ("legacy_pmap", "0.9.0", "new_pmap", "0.10.0")
    ]
    given = agreed([*LATER, *cells], reference="legacy_pmap@0.9.2")
    assert [pair for pair, counts in given.pairs.items() if counts.cells] == [
        ("legacy_pmap", "0.9.2", "new_pmap", "0.10.0")
    ]
    assert given.new == []


def test_new_pmap_is_compared_with_shard_map_where_there_is_no_legacy(agreed: Any) -> None:
    cells = [run("new_pmap", array()), run("shard_map", OTHER)]
    assert only(agreed([*HEAD, *cells])).shape.between == ("new_pmap", "shard_map")
    done = agreed([*HEAD, *cells, run("legacy_pmap", array())])
    assert {pair[::2] for pair in done.pairs} == {
        ("legacy_pmap", "new_pmap"),
        ("legacy_pmap", "shard_map"),
    }


def test_what_differs_by_release_is_documented_between_releases(agreed: Any) -> None:
    text = "before 0.10: returns; since then: raises"
    head = [*LATER[:4], clause("errors.a", expected=dict.fromkeys(SAME, text))]
    cells = [run("legacy_pmap", array()), run("new_pmap", OTHER, target="jax==0.10.0")]
    assert only(agreed([*head, *cells])).sort is Sort.DOCUMENTED


def test_a_fault_is_compared_as_a_whole(agreed: Any) -> None:
    crashed = cell("errors.a", "crashed", topology="1x8")
    found = only(agreed([*HEAD, run("legacy_pmap", array()), crashed]))
    assert found.shape[:3] == ("fault", "none", "crashed SIGSEGV")


def test_cells_without_a_counterpart_are_counted(agreed: Any) -> None:
    absent = run("new_pmap", verdict="not applicable", id="errors.b", observations=[])
    both = [run("legacy_pmap", array()), run("new_pmap", array())]
    done = agreed([*HEAD, *both, run("legacy_pmap", array(), id="errors.b"), absent])
    ((_, counts),) = ((p, c) for p, c in done.pairs.items() if c.cells)
    assert (counts.cells, counts.without) == (1, 1)


def test_results_of_one_implementation_cannot_be_compared(agreed: Any) -> None:
    with pytest.raises(CompareError, match="nothing can"):
        agreed([*HEAD, run("new_pmap", array())])
    with pytest.raises(CompareError, match="write it legacy_pmap@VERSION"):
        agreed([*HEAD, run("new_pmap", array())], reference="new_pmap@0.9.0")


def test_an_agreement_is_told(agreed: Any) -> None:
    done = agreed([*HEAD, run("legacy_pmap", array()), run("new_pmap", OTHER)])
    lines = as_text(done).splitlines()
    assert "1 differences" in lines[0]
    assert lines[1].split() == ["legacy_pmap", "to", "new_pmap,", "dtype:", "float32", "→", "int32"]
    assert re.findall(r"\d[\dx.]*", lines[2]) == ["1", "1", "0.9.0", "1x8"]
    for part in ("errors.a", "first call", "float32 → int32"):
        assert part in lines[3]
    assert re.findall(r"\d+", lines[-1]) == ["1", "1"]
    assert any(one.startswith("compared nowhere") and "compiles" in one for one in lines)
    found = as_json(done)
    assert (found["new"], found["differences"][0]["new_difference"]) == (1, True)
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("versions", "jax", "holds"),
    [
        ("", "0.9.0", True),
        (">=0.9,<0.10", "0.9.2", True),
        (">=0.9,<0.10", "0.10.0", False),
        ("<0.10", "0.10.0", False),
        ("==0.9", "0.9.0", True),
        ("> 0.9.0", "0.9.1", True),
        ("<=0.12", "0.12.0.1", False),
        ("!=0.9.1,!=0.9.2", "0.9.2", False),
        ("!=0.9.1,!=0.9.2", "0.10.0", True),
    ],
)
def test_a_range_of_versions(versions: str, jax: str, holds: bool) -> None:
    assert within(versions, jax) is holds


def test_every_range_in_which_a_program_shows_its_cause_is_read_as_the_catalogue_reads_it() -> None:
    ranges = {one.jax for cause in load_causes().values() for one in cause.shows}
    for versions in ranges:
        for jax in ("0.7.2", "0.8.0", "0.9.1", "0.9.2", "0.10.0", "0.12.0.1"):
            assert within(versions, jax) is SpecifierSet(versions).contains(jax), versions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[other]", r"only \[\[difference\]\] entries are allowed"),
        ("[[difference]", "not valid TOML"),
        (f'[[difference]]\n{ENTRY}why = "x"', "entry 1: unknown key why; remove it"),
        ('[[difference]]\nfield = "dtype"', "new, old, review, says is missing"),
        (f"[[difference]]\n{ENTRY}clause = []", "clause must be a text, or several"),
        (f"[[difference]]\n{ENTRY}cause = 3", "cause must be a text"),
        (f"[[difference]]\n{ENTRY.replace('dtype', 'kind')}", "no field is called kind; there are"),
        (f'[[difference]]\n{ENTRY}new_in = "jax"', "no implementation is called jax"),
        (f"[[difference]]\n{ENTRY.replace('2027-03-01', '1')}", "review must be a date"),
        (
            f'[[difference]]\n{ENTRY}claim = "a"\ncause = "b"',
            "give only one of claim, cause and same",
        ),
        (f'[[difference]]\n{ENTRY}jax = "0.9"', "entry 1: '0.9' is not a range of versions"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "entries.toml"
    file.write_text(text)
    with pytest.raises(EntryError, match=message):
        load_entries(file)


def test_the_entries_name_claims_and_causes_that_exist() -> None:
    entries = load_entries(FILE)
    assert entries
    assert {one.claim for one in entries} - {""} <= set(load_claims().claims)
    assert {one.cause for one in entries} - {""} <= set(load_causes())


def test_the_exit_status_says_whether_a_difference_is_new(tmp_path: Path, capsys: Any) -> None:
    cells = [run("legacy_pmap", array()), run("new_pmap", OTHER)]
    results = str(write(tmp_path / "results", [*HEAD, *cells]))
    entries = tmp_path / "entries.toml"
    entries.write_text("")
    assert (
        main(["report", "agreement", results, "--entries", str(entries), "--format", "json"]) == 1
    )
    assert json.loads(capsys.readouterr().out)["new"] == 1
    assert (
        main(["report", "agreement", results, "--entries", str(entries), "--fail-on", "none"]) == 0
    )
    entries.write_text("[[difference]]\n" + ENTRY.replace('"a"', '"*"').replace('"b"', '"*"'))
    assert main(["report", "agreement", results, "--entries", str(entries)]) == 0
    assert main(["report", "agreement", results, "--entries", str(tmp_path / "none")]) == 2
