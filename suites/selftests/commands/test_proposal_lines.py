"""Proposed changes of deviation entries as text and as JSON: nothing is lost or mixed up."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from judged import entry

from conformance.commands.proposal_lines import lines, record
from conformance.commands.propose import Entry, Excess, Proposal
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP

MADE = Entry(
    file="errors/a.toml",
    clause="errors.a",
    implementations=(NEW_PMAP,),
    seen={"saw": {"code": "value"}},
    cells=(("==0.9.0", ("2x2",)),),
    processes="all",
    explains=True,
)
REFERENCE = replace(MADE, clause="errors.r", implementations=(LEGACY_PMAP,), explains=False)


def excess(name: str, *corrections: Any) -> Excess:
    """An entry whose cells conform, are excused, and see something else, all named after it."""
    about = replace(entry(saw={"code": "value"}), where=f"{name}.toml:1")
    kinds = (f"{name} {what}" for what in ("conforms", "excused", "other"))
    conforms, excused, other = ((one,) for one in kinds)
    return Excess(about, conforms, excused, other, 9, corrections)


FOUND = Proposal(
    add=[MADE],
    reference=[REFERENCE],
    correct=[excess("right", ("bytes", 33, 32))],
    narrow=[excess("wide")],
    drop=[excess("idle")],
    unproven=["one cell", "another cell"],
    judged=7,
)


def entries(*made: Entry) -> list[dict[str, Any]]:
    """The entries to be added, as a reader of TOML finds them."""
    text = "\n".join(lines(Proposal(add=list(made))))
    found: list[dict[str, Any]] = tomllib.loads(text)["deviation"]
    return found


def test_each_part_of_a_proposal_is_printed_as_what_it_is() -> None:
    said = list(lines(FOUND))
    for name in ("wide", "idle"):
        (at,) = (at for at, line in enumerate(said) if f"{name}.toml:1" in line)
        part = said[at : at + 5]
        assert [one for one in part if one.endswith(f" conforms: {name} conforms")]
        assert [one for one in part if one.endswith(f" is seen: {name} excused")]
        assert [one for one in part if one.endswith(f" something else is seen: {name} other")]
    idle = Excess(entry(saw={"code": "value"}), (), (), ("other",), 9)
    assert [one for one in lines(Proposal(drop=[idle])) if one.endswith(" else is seen: other")]
    assert [one for one in said if one.startswith("# narrow wide.toml:1: errors.* under ")]
    assert [one for one in said if one.startswith("# drop idle.toml:1: errors.* under ")]
    assert [one for one in said if one.startswith("# correct right.toml:1: ")]
    assert [one for one in said if one.startswith(f"# errors.r under {LEGACY_PMAP}: ")]
    unproven = [one.rpartition(": ")[2] for one in said if one.startswith("# unproven")]
    assert unproven == FOUND.unproven
    assert len(tomllib.loads("\n".join(said))["deviation"]) == 1


def test_each_part_of_a_proposal_is_in_the_record() -> None:
    def of(name: str, *corrections: dict[str, Any]) -> dict[str, Any]:
        return {
            "entry": f"{name}.toml:1",
            "clause": ["errors.*"],
            "implementation": list(IMPLEMENTATIONS),
            "conforms": [f"{name} conforms"],
            "excuses": [f"{name} excused"],
            "something_else": [f"{name} other"],
            "corrections": list(corrections),
        }

    made = {
        "file": "errors/a.toml",
        "clause": "errors.a",
        "implementation": [NEW_PMAP],
        "seen": {"saw": {"code": "value"}},
        "cells": [{"jax": "==0.9.0", "topology": ["2x2"]}],
        "processes": "all",
        "packages": {},
        "explains": True,
        "cause_like": None,
    }
    reference = {"clause": "errors.r", "implementation": [LEGACY_PMAP], "explains": False}
    assert record(FOUND) == {
        "judged": 7,
        "add": [made],
        "reference": [made | reference],
        "correct": [of("right", {"field": "bytes", "old": 33, "new": 32})],
        "narrow": [of("wide")],
        "drop": [of("idle")],
        "unproven": FOUND.unproven,
    }


@pytest.mark.parametrize("explains", [True, False])
def test_an_entry_that_excuses_too_little_says_so(explains: bool) -> None:
    made = replace(MADE, explains=explains)
    assert any("by hand" in one for one in lines(Proposal(add=[made]))) is not explains


TEXTS = (
    *("plain", "it's", 'a "word"', r"^a\.b$", r"ends\.with'", r"it's a\.b", r"'''\."),
    *("a\ttab", "\x7f", "naïve\u2028", "two\nlines", "\\d\x1b"),
)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_any_text_is_read_as_it_was_written(text: str) -> None:
    seen = {"saw": {"type": text, "noted": {text: [text, 1, True]}}}
    (one,) = entries(replace(MADE, seen=seen, clause=text, packages={text: text}))
    assert (one["clause"], one["saw"], one["packages"]) == (text, seen["saw"], {text: text})
    (one,) = entries(replace(MADE, seen={"steps": {text: {"code": "value"}}}))
    assert one["steps"] == {text: {"code": "value"}}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ((("==0.9.0", ("*",)),), {"jax": "==0.9.0"}),
        ((("==0.9.0", ("2x2",)),), {"jax": "==0.9.0", "topology": "2x2"}),
        ((("==0.9.0", ("2x2", "4x2")),), {"jax": "==0.9.0", "topology": ["2x2", "4x2"]}),
        (
            (("==0.9.0", ("*",)), (">=0.10", ("2x2",))),
            {"cells": [{"jax": "==0.9.0", "topology": "*"}, {"jax": ">=0.10", "topology": "2x2"}]},
        ),
    ],
    ids=["all", "one", "two", "of two ranges"],
)
def test_the_cells_of_an_entry_are_its_versions_and_topologies(cells: Any, said: Any) -> None:
    (one,) = entries(replace(MADE, cells=cells))
    assert {key: one[key] for key in ("jax", "topology", "cells") if key in one} == said


@pytest.mark.parametrize(
    ("processes", "said"),
    [
        ("all", None),
        ("all but the first", "all but the first"),
        ((0, 2), [0, 2]),
        ({"a call": (1,), "b": "all but the last"}, {"a call": [1], "b": "all but the last"}),
    ],
    ids=["all", "in a word", "by number", "by step"],
)
def test_the_processes_of_an_entry_are_those_that_fail(processes: Any, said: Any) -> None:
    (one,) = entries(replace(MADE, processes=processes))
    assert one.get("processes") == said


def test_entries_are_printed_by_file_and_clause() -> None:
    some = [
        replace(MADE, clause="errors.c", implementations=(NEW_PMAP, SHARD_MAP)),
        replace(MADE, clause="errors.b"),
        replace(MADE, file="drop_in/a.toml", clause="drop-in.z"),
    ]
    assert [one["clause"] for one in entries(*some)] == ["drop-in.z", "errors.b", "errors.c"]
    assert entries(*some)[-1]["implementation"] == [NEW_PMAP, SHARD_MAP]
    heads = [one for one in lines(Proposal(add=some)) if one.startswith("# add to ")]
    assert heads == ["# add to drop_in/a.toml", "# add to errors/a.toml"]
