"""`deviations --propose`: entries that recorded cells ask for, and those that say too much."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import records
from judged import HUNG, clause_of, entry
from records import FIRST, SECOND, TOPOLOGY, WITNESS, doubled, observation, raised, returned

from conformance.catalogue import loading
from conformance.catalogue.loading import Catalogue
from conformance.commands.proposal_lines import lines, record
from conformance.commands.propose import Proposal, propose
from conformance.commands.seen_tables import pattern
from conformance.judging import deviations
from conformance.judging.deviations import Deviation
from conformance.spec.arrays import WEAKLY
from conformance.spec.aspects import COMMITTED, SHARDING
from conformance.spec.clause import Clause, Timing
from conformance.spec.expectation import All, OfEachStep, noted, raises, returns, sharded, steps
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import Place, Topology
from conformance.store.errors import ResultsError
from harness.commandline.main import main

TWICE = steps(first_call=returns(doubled), second_call=returns(doubled))
FLAX = {"0.8.0": "0.9.1", "0.9.0": "0.10.2", "0.9.2": "0.11.0", "0.10.0": "0.12.1"}  # by jax
WRONG = "1.0 of 'a' (b)"


def clause(expect: Any = TWICE) -> Clause:
    return replace(clause_of(expect), id="errors.a", topologies=("2x2", "4x2"))


def cell(*wrong: int, verdict: str = "deviates", **other: Any) -> Any:
    """A cell whose second call raises in these processes."""
    jax = other.pop("jax", "0.9.0")
    seen = []
    for process in range(TOPOLOGY.processes):
        value = doubled(Place(TOPOLOGY, process))
        second = (
            raised(name=SECOND, message=WRONG) if process in wrong else returned(value, name=SECOND)
        )
        steps = (returned(value, name=FIRST), second)
        seen.append(observation(*steps, process=process, implementation=NEW_PMAP, jax=jax))
    return (
        records.cell("errors.a", verdict, target=f"jax=={jax}")
        | {"topology": "2x2", "observations": seen}
        | other
    )


@pytest.fixture
def proposed(tmp_path: Path) -> Any:
    """Return the proposal for these cells and entries."""

    def propose_for(
        cells: list[Any],
        *entries: Deviation,
        one: Clause | None = None,
        undocumented: tuple[str, ...] = (),
    ) -> Proposal:
        heads = [
            records.target(version, packages={"flax": flax, "chex": "0.1"})
            for version, flax in FLAX.items()
        ]
        file = records.write(tmp_path / "results", [*heads, *cells])
        return propose(Catalogue({"errors.a": one or clause()}), entries, [file], undocumented)

    return propose_for


def places(texts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return implementation, version and topology of each described cell."""
    return [tuple(re.findall(r"\w+_pmap|\d+(?:\.\d+)+|\d+x\d+", text)) for text in texts]


def toml(found: Proposal) -> dict[str, Any]:
    """The only entry to be added, as it is printed."""
    (one,) = tomllib.loads("\n".join(lines(found)))["deviation"]
    assert isinstance(one, dict)
    return one


def test_what_deviates_without_an_entry_is_to_be_added(proposed: Any) -> None:
    found = proposed([cell(0, 1)])
    one = toml(found)
    assert one.pop("review")
    assert one == {
        "clause": "errors.a",
        "implementation": NEW_PMAP,
        "jax": "==0.9.0",
        "topology": "2x2",
        "steps": {
            SECOND: {
                "type": "ValueError",
                "phase": "lower",
                "message": r"^1\.0 of 'a' \(b\)",
            }
        },
        "cause": "",
    }
    assert [each.explains for each in found.add] == [True]
    said = list(lines(found))
    assert found.add[0].file == "judged.toml"
    assert found.add[0].file in said[0]
    assert re.findall(r"\d+", said[-1]) == ["1", "1", "0", "0", "0"]


def test_what_is_printed_is_an_entry_once_it_has_a_cause(
    proposed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "some.toml"
    text = "\n".join(lines(proposed([cell(1)])))
    file.write_text(text.replace('cause = ""', 'cause = "a-cause"'), encoding="utf-8")
    known = type("Known", (), {"sentence": "So.", "links": ("l",), "kind": "platform"})
    monkeypatch.setattr(deviations, "load_causes", lambda: {"a-cause": known})
    (made,) = deviations.load(file)
    done = proposed([cell(1)], made)
    assert (done.add, done.narrow, done.drop) == ([], [], [])


@pytest.mark.parametrize(
    ("wrong", "processes"),
    [((0, 1), None), ((1,), "all but the first"), ((0,), "all but the last")],
)
def test_the_processes_that_fail_are_named(proposed: Any, wrong: Any, processes: Any) -> None:
    assert toml(proposed([cell(*wrong)])).get("processes") == processes


def test_each_step_has_the_processes_in_which_it_fails(proposed: Any) -> None:
    seen = cell(0, 1)
    seen["observations"][1]["steps"][0] = raised(name=FIRST, message=WRONG)
    found = proposed([seen])
    assert toml(found)["processes"] == {FIRST: "all but the first"}
    assert [each.explains for each in found.add] == [True]


def test_versions_are_those_that_were_run(proposed: Any) -> None:
    cells = [cell(0, jax="0.8.0"), cell(0, jax="0.9.0"), cell(jax="0.9.2"), cell(0, jax="0.10.0")]
    one = toml(proposed(cells))
    assert one["cells"] == [
        {"jax": ">=0.8.0,<=0.9.0", "topology": "2x2"},
        {"jax": "==0.10.0", "topology": "2x2"},
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("0.9.0",), "==0.10.2"),
        (("0.8.0", "0.9.0"), ">=0.9.1,<=0.10.2"),
        (("0.8.0", "0.9.2", "0.10.0"), ">=0.9.1,<=0.12.1,!=0.10.2"),
    ],
)
def test_versions_of_the_packages_that_a_clause_requires_are_proposed(
    proposed: Any, wrong: tuple[str, ...], said: str
) -> None:
    cells = [cell(*([0] if jax in wrong else []), jax=jax) for jax in FLAX]
    one = replace(clause(), requires=("flax",))
    found = proposed(cells, one=one)
    assert toml(found)["packages"] == {"flax": said}
    assert record(found)["add"][0]["packages"] == {"flax": said}
    assert "packages" not in toml(proposed(cells))


def test_an_entry_is_about_the_targets_whose_package_is_in_its_range(proposed: Any) -> None:
    one = replace(clause(), requires=("flax",))
    cells = [cell(0, 1, jax="0.8.0"), cell(0, 1, jax="0.9.0")]
    assert proposed(cells, known(packages={"flax": "<0.11"}), one=one).add == []
    found = proposed(cells, known(packages={"flax": "<0.10"}), one=one)
    assert toml(found)["jax"] == "==0.9.0"
    (dropped,) = proposed([cell(jax="0.8.0")], known(packages={"flax": "<0.10"}), one=one).drop
    assert places(dropped.conforms) == [(NEW_PMAP, "0.8.0", "2x2")]
    assert proposed([cell(jax="0.8.0")], known(packages={"flax": ">0.10"}), one=one).drop == []


def test_a_clause_with_one_step_has_one_pattern(proposed: Any) -> None:
    seen = cell()
    for number, one in enumerate(seen["observations"]):
        one["steps"] = [raised(name=FIRST, message=f"{WRONG} {number}")]
    found = proposed([seen], one=clause(returns(doubled)))
    assert len(toml(found)["steps"]) == 2  # the second call is missing: two steps fail
    for one in seen["observations"]:
        one["steps"][0]["name"] = "a call"
    found = proposed([seen], one=clause(returns(doubled)))
    assert toml(found)["saw"]["message"].startswith(r"^1\.0 of")
    assert [each.explains for each in found.add] == [True]


def weak(*, dtype: str = "float32", weak_type: bool = False) -> Any:
    """A cell whose only step returns the right values, strongly typed."""
    made = cell()
    for number, one in enumerate(made["observations"]):
        step = returned(doubled(Place(TOPOLOGY, number)), name="a call")
        for leaf in step["value"]["leaves"]:
            leaf |= {"dtype": dtype, "weak_type": weak_type}
        one["steps"] = [step]
    return made


def test_another_weak_type_is_named_and_not_the_right_values_beside_it(proposed: Any) -> None:
    one = clause(WEAKLY)
    found = proposed([weak()], one=one)
    assert [each.explains for each in found.add] == [True]
    saw = toml(found)["saw"]
    assert saw == {"code": "weak type", "leaves": [{"dtype": "^float32$", "weak_type": False}]}
    known = entry(saw=saw)
    assert proposed([weak()], known, one=one).add == []
    other = proposed([weak(dtype="float16")], known, one=one)
    assert other.add != [] or other.correct != []


def placed(devices: list[int], **other: Any) -> Any:
    """A cell whose only step returns the right values twice, placed elsewhere in process 1."""
    made = cell()
    for number, one in enumerate(made["observations"]):
        value = doubled(Place(TOPOLOGY, number))
        step = returned(value, value, name="a call")
        for leaf in step["value"]["leaves"]:
            leaf["sharding"] |= {"devices": devices if number else [0, 1]}
            leaf |= other
        one["steps"] = [step]
    return made


ANYWHERE = {"type": "^NamedSharding$", "spec": ["i"]}
ON_ONE = OfEachStep("on one device", lambda place, step: (False, str(step)))


@pytest.mark.parametrize(
    ("expect", "seen", "leaves"),
    [
        (
            sharded("on one device", lambda place, s: len(s["devices"]) == 1),
            placed([0, 1]),
            {"sharding": ANYWHERE | {"devices": [0, 1]}},
        ),
        (
            sharded("on one device", lambda place, s: len(s["devices"]) == 1),
            placed([2, 3]),
            {"sharding": ANYWHERE | {"devices": r"^(\[0, 1\]|\[2, 3\])$"}},
        ),
        (replace(ON_ONE, claims=frozenset({COMMITTED})), placed([0, 1]), {"committed": True}),
        (
            replace(ON_ONE, claims=SHARDING | {COMMITTED}),
            placed([0, 1]),
            {"committed": True, "sharding": ANYWHERE | {"devices": [0, 1]}},
        ),
        (
            returns(lambda p: [doubled(p)] * 2),
            placed([0, 1], committed=False),
            {"committed": False},
        ),
    ],
    ids=["sharding", "other devices by process", "committed", "both", "committed by default"],
)
def test_another_placement_is_named_and_not_the_values_beside_it(
    proposed: Any, expect: Any, seen: Any, leaves: Any
) -> None:
    one = clause(expect)
    found = proposed([seen], one=one)
    saw = toml(found)["saw"]
    assert saw == {"code": "sharding", "leaves": leaves}
    assert [each.explains for each in found.add] == [True]
    assert proposed([seen], entry(saw=saw), one=one).add == []


def test_another_memory_is_named(proposed: Any) -> None:
    seen = placed([0, 1])
    for each in seen["observations"]:
        for leaf in each["steps"][0]["value"]["leaves"]:
            leaf["sharding"] |= {"memory_kind": "pinned_host"}
    one = clause(returns(lambda place: [doubled(place)] * 2))
    saw = toml(proposed([seen], one=one))["saw"]
    assert saw == {
        "code": "memory kind",
        "leaves": {"sharding": {"memory_kind": "^pinned_host$"}},
    }


def test_leaves_that_differ_are_named_one_by_one(proposed: Any) -> None:
    seen = placed([0, 1])
    for each in seen["observations"]:
        each["steps"][0]["value"]["leaves"][1]["committed"] = False
    one = clause(returns(lambda place: [doubled(place)] * 2))
    saw = toml(proposed([seen], one=one))["saw"]
    assert saw["leaves"] == [{"committed": True}, {"committed": False}]


def test_an_entry_about_two_kinds_of_findings_pins_the_printed_value(proposed: Any) -> None:
    one = clause(All((WEAKLY, returns(doubled))))
    seen = weak()
    for each in seen["observations"]:
        each["steps"][0]["value"]["leaves"][0]["values"][0] = 7.0
    saw = toml(proposed([seen], one=one))["saw"]
    assert (sorted(saw), saw["code"]) == (["code", "returned"], ["value", "weak type"])


def noting(figure: str, value: Any) -> Any:
    """A cell whose only step returns what it should, and notes this figure."""
    made = cell()
    for number, one in enumerate(made["observations"]):
        right = doubled(Place(TOPOLOGY, number))
        one["steps"] = [returned(right, name="a call", extra={figure: value})]
    return made


MOVED = {"collectives": {"all-reduce": 32}, "bytes": 32, "multiple": 2.904, "host": False}


@pytest.mark.parametrize(
    ("figure", "seen", "other", "pattern"),
    [
        (
            "moved",
            MOVED,
            MOVED | {"collectives": {"all-reduce": 32, "all-gather": 8}},
            {"bytes": 32, "collectives": r'^\{"all-reduce": 32\}$', "host": False},
        ),
        (
            "memory",
            {"multiple": 2.904, "temp": 7},
            {"multiple": 3.904, "temp": 7},
            {"multiple": {"at_least": 2.9, "at_most": 2.91}},
        ),
        ("donated deleted", [True, False], [True, True], r"^\[true, false\]$"),
        ("an answer of a probe's own", False, True, "^false$"),
    ],
)
def test_a_figure_is_pinned_and_not_the_right_values_beside_it(
    proposed: Any, figure: str, seen: Any, other: Any, pattern: Any
) -> None:
    one = clause(noted(figure, "another figure", lambda place, value: False))
    found = proposed([noting(figure, seen)], one=one)
    assert [each.explains for each in found.add] == [True]
    saw = toml(found)["saw"]
    assert saw["noted"] == {figure: pattern}
    assert "returned" not in saw
    known = entry(saw=saw)
    assert proposed([noting(figure, seen)], known, one=one).add == []
    wrong = proposed([noting(figure, other)], known, one=one)
    assert wrong.add != [] or wrong.correct != []


def test_what_moves_is_proposed_without_the_programs_that_move_it(proposed: Any) -> None:
    one = clause(noted("moved", "another figure", lambda place, value: False))
    seen = noting("moved", MOVED)
    for each in seen["observations"]:
        each["steps"][0]["extra"]["programs"] = [{"collectives": [], "text": "x"}]
    found = proposed([seen], one=one)
    assert toml(found)["saw"]["noted"].keys() == {"moved"}
    assert [each.explains for each in found.add] == [True]


def test_cells_that_move_other_bytes_have_entries_of_their_own(proposed: Any) -> None:
    one = clause(noted("moved", "another figure", lambda place, value: False))
    more = noting("moved", MOVED | {"bytes": 64}) | {"topology": "2x2", "target": "jax==0.9.2"}
    for each in more["observations"]:
        each["jax"] = "0.9.2"
    found = proposed([noting("moved", MOVED), more], one=one)
    assert sorted(each.seen["saw"]["noted"]["moved"]["bytes"] for each in found.add) == [32, 64]


def under(implementation: str, *wrong: int, jax: str = "0.9.0") -> Any:
    """A cell of another implementation whose second call raises in these processes."""
    made = cell(*wrong, jax=jax, implementation=implementation)
    for one in made["observations"]:
        one |= {"implementation": implementation, "witness": [WITNESS[implementation]]}
    return made


def test_implementations_that_see_the_same_have_one_entry(proposed: Any) -> None:
    found = proposed([cell(0, 1), under(SHARD_MAP, 0, 1)])
    assert found.unproven == []
    assert toml(found)["implementation"] == [NEW_PMAP, SHARD_MAP]
    assert len(proposed([cell(0, 1), under(SHARD_MAP, 1)]).add) == 2


def test_the_known_issue_of_a_like_entry_is_proposed(proposed: Any) -> None:
    def cause(*entries: Deviation) -> list[str]:
        return [one for one in lines(proposed([cell(0, 1)], *entries)) if one.startswith("cause")]

    near = replace(known(), clause=("errors.about",), cause="a-cause")
    far = replace(known(), clause=("rank.a",), cause="another-cause")
    other = entry(steps={SECOND: {"type": "KeyError"}})
    other = replace(other, clause=("errors.aa",), cause="another-cause")
    (like,), (unknown,) = cause(far, near, other), cause(far, other)
    assert proposed([cell(0, 1)], far, near, other).add[0].like == ("errors.about", "a-cause")
    assert '"a-cause"' in like
    assert proposed([cell(0, 1)], far, other).add[0].like is None
    assert "`pmap-conformance causes list`" in unknown


def test_an_entry_is_like_one_that_names_a_cause_and_excuses_every_cell(proposed: Any) -> None:
    about = replace(known(), clause=("errors.about",))
    assert proposed([cell(0, 1)], about).add[0].like is None
    early = replace(entry(steps={SECOND: {"message": "1[.]0"}}), clause=("errors.about",))
    other = cell(0, 1, jax="0.9.2")
    for each in other["observations"]:
        each["steps"][1]["exception"]["message"] = "2.0 of 'a' (b)"
    cells, one = [cell(0, 1), other], replace(early, cause="a-cause")
    assert [made.like for made in proposed(cells, one).add] == [None]
    assert [made.like for made in proposed(cells[:1], one).add] == [("errors.about", "a-cause")]


def test_no_entry_excuses_the_reference(proposed: Any) -> None:
    """It is what the test expects, unless one release of it does something else than another."""
    undocumented = (clause().claim,)
    always = [under(LEGACY_PMAP, 0, 1, jax="0.8.0"), under(LEGACY_PMAP, 0, 1)]
    found = proposed(always, undocumented=undocumented)
    assert (found.unproven, found.add, len(found.reference)) == ([], [], 1)
    assert next(lines(found)).startswith("# errors.a under legacy_pmap: ")
    assert len(proposed(always).add) == 1
    some = [under(LEGACY_PMAP, jax="0.8.0"), under(LEGACY_PMAP, 0, 1)]
    assert len(proposed(some, undocumented=undocumented).add) == 1
    assert len(proposed([cell(0, 1)], undocumented=undocumented).add) == 1


def test_an_entry_with_wrong_values_is_to_be_corrected(proposed: Any) -> None:
    one = clause(noted("moved", "another figure", lambda place, value: False))

    def about(moved: Any) -> Deviation:
        saw = {"code": "collective", "noted": {"moved": moved}}
        return replace(entry(saw=saw), where="a.toml:3, entry 1")

    collectives = r'^\{"all-reduce": 32\}$'
    seen = [noting("moved", MOVED)]
    found = proposed(seen, about({"bytes": 33, "collectives": collectives}), one=one)
    assert (found.add, found.narrow, found.drop) == ([], [], [])
    first = next(lines(found))
    assert first.startswith("# correct a.toml:3")
    assert first.endswith("bytes 33 -> 32")
    assert json.loads(json.dumps(record(found)))["correct"][0]["corrections"] == [
        {"field": "bytes", "old": 33, "new": 32}
    ]
    found = proposed(seen, about({"gone": 1}), one=one)
    assert (len(found.add), found.correct, len(found.drop)) == (1, [], 1)


def test_a_fault_is_known_by_its_kind_and_its_step(proposed: Any) -> None:
    fault = records.fault("hung") | {"detail": HUNG.detail, "mapped": ["new pmap"]}
    found = proposed([cell(verdict="hung", fault=fault, observations=[])])
    assert toml(found)["fault"]["kind"] == "hung"
    assert [each.explains for each in found.add] == [True]


def known(**other: Any) -> Deviation:
    return replace(
        entry(steps={SECOND: {"type": "ValueError"}}), implementation=IMPLEMENTATIONS, **other
    )


def test_an_entry_whose_cells_all_conform_is_to_be_dropped(proposed: Any) -> None:
    found = proposed([cell()], known())
    (one,) = found.drop
    assert [line for line in lines(found) if "cells judged: 1, seen in none" in line]
    assert (places(one.conforms), one.excuses) == ([(NEW_PMAP, "0.9.0", "2x2")], ())


def test_an_entry_some_of_whose_cells_conform_is_to_be_narrowed(proposed: Any) -> None:
    found = proposed([cell(0, 1), cell(jax="0.9.2")], known())
    (one,) = found.narrow
    assert places(one.conforms) == [(NEW_PMAP, "0.9.2", "2x2")]
    assert places(one.excuses) == [(NEW_PMAP, "0.9.0", "2x2")]
    assert [line for line in lines(found) if line.endswith(f"conforms: {one.conforms[0]}")]
    assert (found.add, found.drop) == ([], [])


def test_what_an_entry_does_not_explain_is_to_be_added_beside_it(proposed: Any) -> None:
    found = proposed([cell(0, 1), cell(1, jax="0.9.2")], known())
    (one,) = found.narrow
    assert places(one.other) == [(NEW_PMAP, "0.9.2", "2x2")]
    assert toml(found)["processes"] == "all but the first"


def test_an_entry_that_is_right_is_left_alone(proposed: Any) -> None:
    found = proposed([cell(0, 1)], known())
    assert (found.add, found.narrow, found.drop) == ([], [], [])


def test_what_is_unproven_is_not_excused(proposed: Any) -> None:
    seen = cell(0)
    for one in seen["observations"]:
        one["witness"] = []
    found = proposed([seen])
    assert found.add == []
    assert [one.split() for one in found.unproven] == [["errors.a", NEW_PMAP, "jax==0.9.0", "2x2"]]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["a (b)."], r"^a \(b\)\."),
        (["raised ValueError: at 3", "raised ValueError: at 4"], "^raised ValueError: at "),
        (["one thing", "another"], "^(one thing|another)"),
        (["an object at 0x7f0123"], "^an object at "),
        (["first\nsecond"], "^first"),
        (["returned", "returned more"], "^returned"),
        ([""], "^$"),
    ],
)
def test_a_pattern_is_escaped_and_anchored(texts: list[str], found: str) -> None:
    assert pattern(texts) == found
    assert all(re.search(found, text) for text in texts)


# Which cells are judged


@pytest.mark.parametrize(
    ("other", "one"),
    [
        ({"clause": "errors.gone"}, clause()),
        ({"verdict": "removed"}, clause()),
        ({"verdict": "not run"}, clause()),
        ({}, replace(clause(), timing=Timing(("body",), ()))),
        ({}, replace(clause(), expect={SHARD_MAP: TWICE})),
    ],
    ids=["no clause", "removed", "not run", "timing", "another implementation"],
)
def test_cells_that_no_entry_is_about_are_passed_over(
    proposed: Any, other: Any, one: Clause
) -> None:
    with pytest.raises(ResultsError, match="no cell"):
        proposed([cell(0, 1) | other], one=one)


def test_an_entry_about_a_warning_makes_the_cell_conform(proposed: Any) -> None:
    seen = cell()
    for each in seen["observations"]:
        each["steps"][0]["warnings"] = [{"category": "UserWarning", "message": "so", "count": 1}]
    known = entry(warns={"category": "UserWarning", "message": "^so$"})
    assert len(proposed([seen]).add) == 1
    found = proposed([seen], known)
    assert (found.add, found.narrow, found.drop) == ([], [], [])


def test_what_is_unproven_is_not_excused_by_an_entry(proposed: Any) -> None:
    seen = cell(0, 1)
    for one in seen["observations"]:
        one["witness"] = []
    found = proposed([seen], known())
    assert len(found.unproven) == 1
    assert [places(one.other) for one in found.drop] == [[(NEW_PMAP, "0.9.0", "2x2")]]


# What is corrected


def moving(size: int, jax: str = "0.9.0") -> Any:
    made = noting("moved", MOVED | {"bytes": size}) | {"target": f"jax=={jax}"}
    for each in made["observations"]:
        each["jax"] = jax
    return made


def saying(*sizes: int) -> Deviation:
    """An entry about one of these numbers of bytes."""
    return entry(saw=[{"code": "collective", "noted": {"moved": {"bytes": s}}} for s in sizes])


@pytest.mark.parametrize(
    ("cells", "known", "found"),
    [
        ([moving(32)], saying(33), (1, 0, 0)),
        ([moving(32)], saying(33, 34), (0, 0, 1)),  # which of both is not said
        ([moving(32), moving(64, "0.9.2")], saying(33), (0, 0, 1)),  # of two values none
        ([moving(32), moving(33, "0.9.2")], saying(33), (0, 1, 0)),
        ([moving(32), moving(1, "0.9.2")], saying(33), (0, 0, 1)),
    ],
    ids=["one", "two patterns", "two values", "one is right", "one conforms"],
)
def test_an_entry_is_corrected_only_if_one_value_is_right_in_all_its_cells(
    proposed: Any, cells: Any, known: Deviation, found: tuple[int, int, int]
) -> None:
    right = noted("moved", "one byte", lambda place, value: value["bytes"] == 1)
    made = proposed(cells, known, one=clause(right))
    assert (len(made.correct), len(made.narrow), len(made.drop)) == found


# Which cells share an entry, and which are the reference's own


def test_a_crash_of_every_release_of_the_reference_has_an_entry(proposed: Any) -> None:
    fault = records.fault("hung") | {"detail": HUNG.detail, "mapped": ["legacy pmap"]}
    seen = under(LEGACY_PMAP) | {"verdict": "hung", "fault": fault, "observations": []}
    found = proposed([seen], undocumented=(clause().claim,))
    assert (len(found.add), found.reference) == (1, [])


def test_the_reference_must_deviate_always_on_each_topology(proposed: Any) -> None:
    four = Topology.parse("4x2")

    def on_four(jax: str, *, wrong: bool) -> Any:
        seen = []
        for process in range(four.processes):
            right = doubled(Place(four, process))
            second = raised(name=SECOND, message=WRONG) if wrong else returned(right, name=SECOND)
            steps = (returned(right, name=FIRST), second)
            where = {"process": process, "processes": four.processes, "jax": jax}
            witness = [WITNESS[LEGACY_PMAP]]
            seen.append(observation(*steps, **where, implementation=LEGACY_PMAP, witness=witness))
        made = under(LEGACY_PMAP, jax=jax)
        return made | {"topology": "4x2", "observations": seen}

    claim = (clause().claim,)
    always = [under(LEGACY_PMAP, 0, 1), on_four("0.9.0", wrong=True)]
    assert proposed(always, undocumented=claim).add == []
    found = proposed([*always, on_four("0.8.0", wrong=False)], undocumented=claim)
    assert (len(found.add), found.reference) == (1, [])


def test_errors_of_two_phases_have_entries_of_their_own(proposed: Any) -> None:
    early, late = cell(0, 1), cell(0, 1, jax="0.9.2")
    for each in late["observations"]:
        each["steps"][1]["exception"]["phase"] = "trace"
    found = proposed([early, late])
    assert sorted(one.seen["steps"][SECOND]["phase"] for one in found.add) == ["lower", "trace"]


def returning(factor: float, jax: str) -> Any:
    """A cell whose only step returns the rows, multiplied."""
    made = cell(jax=jax)
    for number, one in enumerate(made["observations"]):
        rows = doubled(Place(TOPOLOGY, number)) * np.float32(factor)
        one["steps"] = [returned(rows, name="a call")]
    return made


def test_an_entry_says_that_it_does_not_excuse_all_its_cells(proposed: Any) -> None:
    both, apart = returning(3, "0.9.0"), returning(3, "0.9.2")
    right, wrong = apart["observations"]
    right["steps"] = [returned(doubled(Place(TOPOLOGY, 0)), name="a call")]
    wrong["steps"][0]["value"]["leaves"][0]["weak_type"] = True
    one = clause(All((WEAKLY, returns(doubled))))
    found = proposed([both, apart], one=one)
    (made,) = found.add
    assert made.seen["saw"]["code"] == ["value", "weak type"]
    assert proposed([both], one=one).add[0].explains
    assert not made.explains
    assert record(found)["add"][0]["explains"] is False
    said = [line for line in lines(found) if "it does not excuse all" in line]
    assert len(said) == 1
    assert "it does not excuse" not in "".join(lines(proposed([both], one=one)))


def test_two_mistakes_have_entries_of_their_own(proposed: Any) -> None:
    mistakes = {"half (0.5)": lambda p: doubled(p) / 2, "twice": lambda p: doubled(p) * 2}
    one = clause(returns(doubled, mistakes=mistakes))
    found = proposed([returning(0.5, "0.9.0"), returning(2, "0.9.2")], one=one)
    said = [one.seen["saw"] for one in found.add]
    assert said == [
        {"code": "value", "mistake": r"half \(0\.5\)"},
        {"code": "value", "mistake": "twice"},
    ]
    assert all(one.explains for one in found.add)


def test_other_base_classes_are_named_beside_the_error(proposed: Any) -> None:
    seen = cell()
    for each in seen["observations"]:
        each["steps"] = [raised(name="a call", bases=("KeyError", "LookupError"))]
    (made,) = proposed([seen], one=clause(returns(doubled))).add
    assert made.seen["saw"]["code"] == ["bases", "error"]
    assert made.explains


def test_a_step_that_was_not_reached_is_absent(proposed: Any) -> None:
    seen = cell()
    for each in seen["observations"]:
        del each["steps"][1]
    (made,) = proposed([seen]).add
    assert made.seen == {"steps": {SECOND: {"absent": True, "code": "ending"}}}
    assert made.explains


def test_right_and_wrong_values_in_place_of_an_error_have_entries_of_their_own(
    proposed: Any,
) -> None:
    one = clause(raises(ValueError, "no", otherwise=doubled))
    found = proposed([returning(1, "0.9.0"), returning(3, "0.9.2")], one=one)
    assert sorted(one.seen["saw"]["values"] for one in found.add) == ["right", "wrong"]


def test_results_without_a_cell_are_refused(proposed: Any) -> None:
    with pytest.raises(ResultsError, match="no cell"):
        proposed([])


def test_the_command_prints_toml_or_json(
    proposed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found = proposed([cell(0)])
    monkeypatch.setattr(loading, "load", lambda: Catalogue({"errors.a": clause()}))
    file = str(tmp_path / "results")
    assert main(["results", "propose", file]) == 0
    assert capsys.readouterr().out.splitlines() == list(lines(found))
    assert main(["results", "propose", file, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(record(found)))
    assert main(["list", "deviations"]) == 0
    assert "errors" in capsys.readouterr().out
