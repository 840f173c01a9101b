"""Deviation entries: what is refused, which cells an entry is about, and the entries there are.

An entry that matches no cell, or one too many, would make a verdict that nobody can trust.
"""

from __future__ import annotations

import builtins
import datetime
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import real
from judged import clause_of, received
from packaging.version import Version
from published import published_versions
from records import Record, observation, raised, returned

from conformance.catalogue.causes import Cause
from conformance.judging import deviations
from conformance.judging.deviations import (
    SEEN,
    ByClause,
    Deviation,
    DeviationError,
    load,
    matching,
    of_no_clause,
    of_no_package,
    of_other_cells,
    seen_patterns,
)
from conformance.judging.seen import step_pattern
from conformance.spec.exceptions import BASES, expected_bases
from conformance.spec.expectation import All, Finding, NotApplicable
from conformance.spec.expectation import returns as expects
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Observation
from conformance.spec.topology import Topology

# The versions of the published matrix; legacy pmap was removed in 0.10.
PUBLISHED = published_versions()
WITH_LEGACY = tuple(one for one in PUBLISHED if Version(one) < Version("0.10"))
WITHOUT_LEGACY = tuple(one for one in PUBLISHED if one not in WITH_LEGACY)
PLATFORMS = ("cpu", "cuda", "tpu-compile")  # on which cells are published
ON_CUDA = ("0.9.2", "0.11.2")  # the versions of which cells on CUDA are published


Cell = tuple[str, str, str, str, str]

GOOD: dict[str, str] = {
    "clause": "'errors.a'",
    "implementation": "'new_pmap'",
    "saw": "{ code = 'value' }",
    "cause": "'a-cause'",
    "review": "2027-01-31",
}


def toml(**other: str | None) -> str:
    """An entry in TOML; None leaves a key out."""
    keys = {key: text for key, text in (GOOD | other).items() if text is not None}
    return "[[deviation]]\n" + "".join(f"{key} = {text}\n" for key, text in keys.items())


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one cause."""
    cause = Cause(
        slug="a-cause",
        section="errors",
        title="It changed",
        sentence="Removed.",
        kind="platform",
        tags=("jax.pmap",),
        links=("https://example.org/first", "https://example.org/second"),
        shows=(),
        program="",
    )
    monkeypatch.setattr(deviations, "load_causes", lambda: {"a-cause": cause})


@pytest.fixture
def read(tmp_path: Path, known: None) -> Any:
    def run(text: str) -> tuple[Deviation, ...]:
        file = tmp_path / "some.toml"
        file.write_text(text, encoding="utf-8")
        return load(file)

    return run


VALUE = {"code": "value"}


def entry(**other: Any) -> Deviation:
    """An entry; `saw`, `steps` and `fault` as in TOML."""
    seen = {key: other.pop(key) for key in SEEN if key in other}
    if seen:
        other = {"saw": (), **seen_patterns(seen), **other}
    facts: dict[str, Any] = {
        "clause": ("errors.a",),
        "implementation": (NEW_PMAP,),
        "saw": (step_pattern(VALUE),),
        "cause": "a-cause",
        "why": "Removed.",
        "link": "https://example.org/first",
        "kind": "platform",
        "review": datetime.date(2027, 1, 31),
    }
    return Deviation(**facts | other)


# Reading


def test_an_entry_is_read(read: Any) -> None:
    assert read(toml()) == (entry(),)


def test_one_name_or_several_may_be_given(read: Any) -> None:
    (one,) = read(
        toml(
            clause="['errors.a', 'errors.b.*']",
            implementation="['new_pmap', 'shard_map']",
            platform="'cpu'",
            topology="['1x8', '4x*']",
            jax="'>=0.8,<0.10'",
        )
    )
    assert one == entry(
        clause=("errors.a", "errors.b.*"),
        implementation=(NEW_PMAP, SHARD_MAP),
        platform=("cpu",),
        topology=("1x8", "4x*"),
        jax=">=0.8,<0.10",
    )


def test_a_file_without_entries_is_read(read: Any) -> None:
    assert read("# nothing\n") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (toml(because="'x'"), "unknown key because; remove it"),
        *((toml(**{key: None}), rf"{key} is missing") for key in GOOD if key != "saw"),
        (toml(saw=None), "describe what is seen with one of saw, steps, fault"),
        (toml(steps="{ 'a call' = { code = 'value' } }"), "is seen with one of saw, steps, fault"),
        (toml(implementation="'pmap'"), "no implementation is called pmap"),
        (toml(implementation="['new_pmap', 'jit']"), "no implementation is called jit"),
        (toml(saw="{ message = '(' }"), "unterminated subpattern"),
        (toml(saw="{ message = '.*' }"), r"'\.\*' matches every text: narrow it"),
        (toml(saw="{ message = '^[a-z]*$' }"), "matches every text: narrow it"),
        (toml(saw="{ noted = { paths = ['^(a)?'] }, code = 'note' }"), "matches every text"),
        (toml(jax="'0.8 to 0.9'"), "Invalid specifier"),
        (toml(review="'2027-01-31'"), "review must be a date"),
        (toml(review="2027"), "review must be a date"),
        (toml(review="2027-01-31T08:00:00"), "review must be a date"),
        (toml(clause="3"), "clause"),
        (toml(implementation="3"), "implementation"),
        (toml(saw="3"), "a table of fields"),
        (toml(jax="0.9"), "jax"),
    ],
)
def test_a_mistake_in_an_entry_is_refused(read: Any, text: str, said: str) -> None:
    with pytest.raises(DeviationError, match=said) as caught:
        read(toml(clause="'errors.first'") + text)
    assert str(caught.value).startswith("some.toml:7, entry 2 (")


def test_an_entry_is_named_by_the_line_of_its_header(read: Any) -> None:
    """A header in a comment or in a text counts for none."""
    said = toml(note="'of [[deviation]]'")
    first, second = read(f"# [[deviation]]\n\n{said}\n{toml()}")
    assert first.where == "some.toml:3, entry 1"
    assert second.where == "some.toml:11, entry 2"


def test_an_unknown_clause_is_refused_with_those_of_like_names() -> None:
    known = ["errors.first", "rank.other"]
    (said,) = of_no_clause([entry(clause=("errors.frist", "rank.*"))], known)
    assert {"errors.frist", "errors.first"} <= set(re.findall(r"[a-z]+[.][a-z]+", said))
    assert "rank" not in said


def test_an_entry_that_is_not_about_a_cell_says_what_it_is_about() -> None:
    one = entry(jax="==0.9.0", topology=("1x8",))
    at = ("errors.a", NEW_PMAP)
    assert one.elsewhere(*at, "0.9.0", "cpu", "1x8") == ""
    assert one.elsewhere(*at, "0.9.1", "cpu", "1x8") == "jax ==0.9.0"
    assert one.elsewhere(*at, "0.9.1", "cpu", "2x2") == "jax ==0.9.0, topology 1x8"
    assert one.elsewhere("errors.a", SHARD_MAP, "0.9.0", "cpu", "1x8") == NEW_PMAP
    assert one.elsewhere("errors.b", NEW_PMAP, "0.9.1", "cpu", "1x8") == ""
    several = entry(cells=(("<0.9", ("2x2",)), ("", ("1x8",))), platform=("cpu",))
    assert several.elsewhere(*at, "0.9.0", "gpu", "2x2") == (
        f"platform cpu, jax {several.versions}"
    )


def test_entries_about_other_cells_of_a_clause_are_described() -> None:
    older, other = entry(jax="<0.9"), entry(implementation=(SHARD_MAP,), jax="<0.9")
    warns = entry(warns={"category": "UserWarning", "message": "x"})
    cell = ("errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8")
    entries = [older, other, replace(warns, jax="<0.9"), entry(), entry(clause=("errors.b",))]
    (said,) = of_other_cells(entries, *cell)
    assert said.startswith(older.where)
    assert older.elsewhere(*cell) in said


def test_an_empty_message_can_be_what_is_seen(read: Any) -> None:
    (one,) = read(toml(saw="{ type = 'AssertionError', message = '^$' }"))
    assert explains(one, seen_by(raised("AssertionError", "")))
    assert not explains(one, seen_by(raised("AssertionError", "no")))


def test_an_unknown_table_is_refused(read: Any) -> None:
    with pytest.raises(DeviationError, match=r"some\.toml: .* deviations; .*\[\[deviation"):
        read(toml().replace("[[deviation]]", "[[deviations]]"))


# What an entry says beside its cause


def test_a_cause_says_why_and_where_to_read_more(read: Any) -> None:
    plain, noted = read(toml() + toml(note="'Here too.'"))
    assert plain.cause == noted.cause == "a-cause"
    assert plain.why == "Removed."
    assert noted.why == "Removed. Here too."
    assert (plain.link, plain.kind) == ("https://example.org/first", "platform")


def test_what_is_seen_may_be_said_of_each_step(read: Any) -> None:
    steps = "{ 'first call' = { code = 'value' }, 'second call' = { type = 'KeyError' } }"
    (one,) = read(toml(saw=None, steps=steps))
    assert one == entry(steps={"first call": VALUE, "second call": {"type": "KeyError"}})


@pytest.mark.parametrize(
    ("cells", "meant"),
    [
        ("[{ jax = '<0.9' }]", (("<0.9", ("*",)),)),
        ("[{ topology = '1x8' }]", (("", ("1x8",)),)),
        (
            "[{ jax = '<0.9', topology = ['2x2', '4x*'] }, { topology = '1x8' }]",
            (("<0.9", ("2x2", "4x*")), ("", ("1x8",))),
        ),
    ],
)
def test_an_entry_may_be_about_several_ranges(read: Any, cells: str, meant: Any) -> None:
    (one,) = read(toml(cells=cells))
    assert one.cells == meant


def test_each_range_goes_with_its_own_topologies() -> None:
    one = entry(cells=(("<0.9", ("2x2", "4x*")), ("", ("1x8",))))
    places = [(jax, place) for jax in ("0.8.0", "0.9.0") for place in ("1x8", "2x2", "4x2", "2x4")]
    found = {at for at in places if one.matches("errors.a", NEW_PMAP, at[0], "cpu", at[1])}
    assert found == {("0.8.0", "1x8"), ("0.8.0", "2x2"), ("0.8.0", "4x2"), ("0.9.0", "1x8")}
    assert re.findall(r"[<>]?[0-9][0-9.x*]*|any", one.versions) == [
        *("<0.9", "2x2", "4x*"),
        *("any", "1x8"),
    ]
    assert entry(jax=">=0.8").versions == ">=0.8"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (toml(cause="'other'"), "no cause is called other: .* is sections/.*/other.toml"),
        (toml(why="'x'"), "unknown key why; remove it"),
        (toml(link="'x'"), "unknown key link; remove it"),
        (toml(kind="'platform'"), "unknown key kind; remove it"),
        (toml(cause="'a-couse'"), r"no cause is called a-couse; did you mean a-cause\?"),
        (toml(cause="''"), "cause is empty: name one of `pmap-conformance causes list`, or add"),
        (toml(cause="3"), "cause must be a text"),
        (toml(note="''"), "note must be a text"),
        (toml(saw="''"), "a table of fields"),
        (toml(saw="{}"), "a table of fields"),
        (toml(saw="[]"), "a table of fields, or several in a list"),
        (toml(saw="['x']"), "a table of fields"),
        (toml(saw="{ said = 'x' }"), "said is not a field; there are type, phase, message"),
        (toml(saw="{ returned = 'x' }"), "needs `code`: what was compared and failed"),
        (toml(saw="{ code = 'values' }"), "code is 'values', not of value, shape"),
        (toml(saw="{ code = [] }"), r"code is \[\], not of"),
        (toml(saw=None, steps="{}"), "steps is a table of steps"),
        (toml(saw=None, steps="{ 'a call' = 'x' }"), "a table of fields"),
        (toml(saw=None, fault="'hung'"), "a table of fields"),
        (toml(saw=None, fault="{ signal = 'SIGABRT' }"), "a fault has a kind"),
        (toml(saw=None, fault="{ kind = 'hung', text = 'x' }"), "text is not a field"),
        (toml(saw=None, fault="{ kind = 'hung', in_step = 'x' }"), "in_step is written"),
        (toml(saw=None, fault="{ kind = 'hung', in_step = { a = 'some' } }"), "in_step is written"),
        (toml(cells="[{ jax = '<0.9' }]", jax="'<0.9'"), "leave those two out"),
        (toml(cells="[{ jax = '<0.9' }]", topology="'1x8'"), "leave those two out"),
        (toml(cells="[]"), "cells are written"),
        (toml(cells="[{}]"), "cells are written"),
        (toml(cells="'<0.9'"), "cells are written"),
        (toml(cells="['<0.9']"), "cells are written"),
        (toml(cells="[{ version = '<0.9' }]"), "cells are written"),
        (toml(cells="[{ jax = '0.8 to 0.9' }]"), "Invalid specifier"),
        (toml(processes="2"), "processes are written"),
        (toml(processes="'the last'"), "processes are written"),
        (toml(processes="[]"), "processes are written"),
        (toml(processes="['2']"), "processes are written"),
        (
            toml(processes="{ a = 2 }", saw=None, steps="{ a = { code = 'value' } }"),
            "processes are written",
        ),
        (toml(processes="{ 'a call' = [1] }"), "names a call, which steps does not have"),
        (toml(packages="'>=0.12'"), "packages are written"),
        (toml(packages="['flax']"), "packages are written"),
        (toml(packages="{ flax = 0.12 }"), "packages are written"),
        (toml(packages="{ flax = '' }"), "packages are written"),
        (toml(packages="{ flax = '0.10 to 0.12' }"), "Invalid specifier"),
    ],
)
def test_a_mistake_in_an_entry_with_a_cause_is_refused(read: Any, text: str, said: str) -> None:
    with pytest.raises(DeviationError, match=said) as caught:
        read(toml() + text)
    assert str(caught.value).startswith("some.toml:7, entry 2 (")


# Matching


@pytest.mark.parametrize(
    ("pattern", "clause", "matches"),
    [
        ("errors.a", "errors.a", True),
        ("errors.a", "errors.ab", False),
        ("errors.a", "xerrors.a", False),
        ("errors.*", "errors.a.b", True),
        ("errors.*.b", "errors.a.b", True),
        ("*.b", "errors.a.b", True),
        ("errors.?", "errors.a", True),
        ("errors.[ab]", "errors.b", True),
        ("Errors.a", "errors.a", False),
        ("errors", "errors.a", False),
    ],
)
def test_a_clause_is_matched_by_a_shell_pattern(pattern: str, clause: str, matches: bool) -> None:
    assert entry(clause=(pattern,)).matches(clause, NEW_PMAP, "0.9.0", "cpu", "1x8") is matches


@pytest.mark.parametrize(
    ("jax", "version", "matches"),
    [
        ("", "0.7.2", True),
        ("", "0.12.0.1", True),
        (">=0.12", "0.12.0.1", True),
        (">0.12.0", "0.12.0.1", True),
        ("<=0.12.0", "0.12.0.1", False),
        ("==0.12.0", "0.12.0.1", False),
        ("==0.12.0.1", "0.12.0.1", True),
        ("==0.12.*", "0.12.0.1", True),
        ("<0.12.1", "0.12.0.1", True),
        ("<0.10", "0.9.2", True),
        ("<0.10", "0.10.0", False),
        (">=0.8,<0.10", "0.10.2", False),
        (">=0.8,<0.10", "0.8.0", True),
        (">=0.8,<0.10", "0.7.2", False),
        ("!=0.9.1", "0.9.1", False),
        (">=0.9", "0.10.0", True),
        (">=0.9", "0.13.0.dev20261101", True),
    ],
)
def test_a_version_is_matched_as_a_version(jax: str, version: str, matches: bool) -> None:
    assert entry(jax=jax).matches("errors.a", NEW_PMAP, version, "cpu", "1x8") is matches


@pytest.mark.parametrize(
    ("other", "cell", "matches"),
    [
        ({}, (SHARD_MAP, "cpu", "1x8"), False),
        ({"implementation": (NEW_PMAP, SHARD_MAP)}, (SHARD_MAP, "cpu", "1x8"), True),
        ({"platform": ("cpu",)}, (NEW_PMAP, "cpu", "1x8"), True),
        ({"platform": ("cpu",)}, (NEW_PMAP, "tpu", "1x8"), False),
        ({"platform": ("cuda", "tpu")}, (NEW_PMAP, "tpu", "1x8"), True),
        ({"topology": ("1x8",)}, (NEW_PMAP, "cpu", "4x2"), False),
        ({"topology": ("4x*",)}, (NEW_PMAP, "cpu", "4x2"), True),
        ({"topology": ("1x*", "2x*")}, (NEW_PMAP, "cpu", "4x2"), False),
    ],
)
def test_the_rest_of_a_cell_is_matched(
    other: dict[str, Any], cell: tuple[str, str, str], matches: bool
) -> None:
    implementation, platform, topology = cell
    found = entry(**other).matches("errors.a", implementation, "0.9.0", platform, topology)
    assert found is matches


@pytest.mark.parametrize(
    ("asked", "there", "matches"),
    [
        ({}, {}, True),
        ({"flax": ">=0.12"}, {"flax": "0.12.0"}, True),
        ({"flax": ">=0.12"}, {"flax": "0.12.0", "chex": "0.1"}, True),
        ({"flax": ">=0.12"}, {"flax": "0.9.5"}, False),
        ({"flax": ">=0.12"}, {"chex": "0.12"}, False),
        ({"flax": ">=0.12"}, {}, False),
        ({"flax": ">=0.12", "chex": "<0.2"}, {"flax": "0.12.0", "chex": "0.2.1"}, False),
        ({"flax": ">=0.12", "chex": "<0.2"}, {"flax": "0.12.0", "chex": "0.1.9"}, True),
        ({"flax": ">=0.12"}, None, True),
    ],
)
def test_a_package_is_matched_by_its_version(
    asked: dict[str, str], there: dict[str, str] | None, matches: bool
) -> None:
    one = entry(packages=asked)
    assert one.matches("errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8", there) is matches


def test_entries_for_two_releases_of_a_package_do_not_claim_one_cell() -> None:
    both = entry(packages={"flax": "<0.12"}), entry(packages={"flax": ">=0.12"})
    at = ("errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8")
    assert matching(both, *at, {"flax": "0.11.2"}) == both[:1]
    assert matching(both, *at, {"flax": "0.12.0"}) == both[1:]
    assert matching(both, *at, {}) == ()


def test_what_an_entry_says_of_packages_is_told_with_its_versions() -> None:
    assert entry(packages={"flax": ">=0.12"}).versions == "any, with flax >=0.12"
    assert entry(jax="<0.9", packages={"flax": "<1"}).versions == "<0.9, with flax <1"


def test_a_package_that_no_clause_of_an_entry_requires_is_refused(read: Any) -> None:
    (one,) = read(toml(packages="{ flax = '<0.12' }"))
    bare = replace(clause_of(expects(lambda place: None)), id="errors.a")
    (said,) = of_no_package([one], {"errors.a": bare})
    assert said.startswith(f"{one.where}: errors.a ")
    assert "flax" in said
    assert of_no_package([one], {"errors.a": replace(bare, requires=("flax",))}) == []
    assert of_no_package([one], {"errors.b": bare}) == []


def test_every_package_that_an_entry_names_is_required() -> None:
    assert of_no_package(real.entries(), real.catalogue().clauses) == []


def test_the_base_classes_of_every_exception_that_an_entry_names_are_known() -> None:
    python = {name for name in dir(builtins) if expected_bases(name)}
    patterns = (
        pattern.fields["type"]
        for entry in real.entries()
        for pattern in (*entry.saw, *(one for some in entry.steps.values() for one in some))
        if "type" in pattern.fields
    )
    unknown = {
        one for one in patterns if not any(re.fullmatch(one, name) for name in python | {*BASES})
    }
    assert unknown == set()


def test_the_entry_about_a_cell_is_found() -> None:
    first, second = entry(jax="<0.9"), entry(jax=">=0.9")
    assert matching((first, second), "errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8") == (second,)
    assert matching((first, second), "errors.b", NEW_PMAP, "0.9.0", "cpu", "1x8") == ()


def test_two_entries_that_claim_one_cell_are_refused() -> None:
    both = entry(clause=("errors.*",)), entry(jax=">=0.8")
    with pytest.raises(DeviationError, match=r"^2 .*errors\.a"):
        matching(both, "errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8")


REFUSED = raised("KeyError", "no")
OTHER = raised("ValueError", "no")
CODES = {"returned": "value", "raised": "error"}


def seen_by(*steps: Record, holding: Iterable[str] = (), process: int = 0) -> Any:
    """The findings on one process, and what it observed: these steps fail, those hold."""
    findings = [
        *(Finding(s["name"], process, False, "it", "", CODES[s["outcome"]]) for s in steps),
        *(Finding(name, process, True, "it", "it") for name in holding),
    ]
    return findings, received(observation(*steps, process=process))


def explains(one: Deviation, *processes: tuple[list[Finding], Observation]) -> bool:
    """Return whether an entry explains these processes' observations."""
    findings = [finding for some, _ in processes for finding in some]
    return one.explains(findings, [seen for _, seen in processes])


def step(record: Record, name: str) -> Record:
    return record | {"name": name}


WRONG = returned([2.0, 4.0])


def test_an_entry_explains_what_its_pattern_finds() -> None:
    one = entry(saw=VALUE | {"returned": "4[.]"})
    assert explains(one, seen_by(WRONG))
    assert not explains(one, seen_by(returned([2.0, 3.0])))
    assert not explains(one, seen_by(REFUSED))


def test_one_of_several_patterns_is_enough() -> None:
    one = entry(saw=[VALUE, {"type": "KeyError"}])
    assert explains(one, seen_by(WRONG), seen_by(REFUSED, process=1))
    assert not explains(one, seen_by(WRONG), seen_by(OTHER, process=1))


def test_a_fault_is_explained_by_what_ended_first() -> None:
    def ended(signal: str) -> Fault:
        return Fault("crashed", "", processes=(Whereabouts(1, (), "a call", signal),))

    one = entry(fault={"kind": "crashed", "signal": "SIGSEGV"})
    assert one.explains([], [], ended("SIGSEGV"))
    assert not one.explains([], [], ended("SIGABRT"))
    assert not one.explains([], [])
    assert not entry().explains([], [], ended("SIGSEGV"))


def test_which_of_several_steps_fails_must_be_said() -> None:
    assert explains(entry(), seen_by(WRONG))
    assert not explains(entry(), seen_by(WRONG, holding=["second call"]))


FIRST, SECOND = step(WRONG, "first call"), step(REFUSED, "second call")


@pytest.mark.parametrize(
    ("failed", "explained"),
    [
        ([FIRST, SECOND], True),
        ([SECOND, FIRST], True),
        ([FIRST], False),
        ([SECOND], False),
        ([FIRST, SECOND, step(REFUSED, "third call")], False),
        ([FIRST, step(OTHER, "second call")], False),
        ([step(REFUSED, "first call"), step(WRONG, "second call")], False),
    ],
)
def test_the_steps_that_are_named_and_no_others_must_fail(
    failed: list[Record], explained: bool
) -> None:
    one = entry(
        steps={"first call": VALUE | {"returned": "4[.]"}, "second call": {"type": "KeyError"}}
    )
    holding = {"first call", "second call", "third call"} - {one["name"] for one in failed}
    assert explains(one, seen_by(*failed, holding=holding)) is explained
    assert one.seen == "first call: code value, returned 4[.]; second call: type KeyError"


@pytest.mark.parametrize(
    ("processes", "failing", "explained"),
    [
        ("all", {0, 1, 2, 3}, True),
        ("all", {0, 1, 2}, False),
        ("all but the first", {1, 2, 3}, True),
        ("all but the first", {0, 1, 2, 3}, False),
        ("all but the last", {0, 1, 2}, True),
        ("the first half", {0, 1}, True),
        ("the second half", {2, 3}, True),
        ("the second half", {1, 2, 3}, False),
        ((2, 3), {2, 3}, True),
        ((2, 3), {2}, False),
        ((2, 3), {1, 2, 3}, False),
        ((2, 3), {0, 1, 2, 3}, False),
    ],
)
def test_a_step_fails_in_each_process_or_in_those_that_are_named(
    processes: tuple[int, ...] | str, failing: set[int], explained: bool
) -> None:
    seen = [
        seen_by(WRONG, process=p) if p in failing else seen_by(holding=["a call"], process=p)
        for p in range(4)
    ]
    assert explains(entry(processes=processes), *seen) is explained


@pytest.mark.parametrize(
    ("first", "second", "explained"),
    [
        ({1}, {0, 1}, True),
        ({0, 1}, {0, 1}, False),
        ({1}, {1}, False),
        ({0}, {0, 1}, False),
    ],
)
def test_each_step_may_fail_in_processes_of_its_own(
    first: set[int], second: set[int], explained: bool
) -> None:
    seen = []
    for process in range(2):
        failed = [one for some, one in ((first, FIRST), (second, SECOND)) if process in some]
        holding = {"first call", "second call"} - {one["name"] for one in failed}
        seen.append(seen_by(*failed, holding=holding, process=process))
    one = entry(
        steps={"first call": VALUE, "second call": {"type": "KeyError"}},
        processes={"first call": "all but the first"},
    )
    assert explains(one, *seen) is explained


def test_an_entry_that_matches_nothing_is_found() -> None:
    used, unused = entry(), entry(clause=("errors.gone",))
    cells = [("errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8")]
    assert unmatched((used, unused), cells) == [unused]
    assert unmatched((used, unused), []) == [used, unused]


@pytest.mark.parametrize(
    "other",
    [{"jax": ">=0.9.1"}, {"platform": ("tpu",)}, {"topology": ("2x2",)}],
    ids=" ".join,
)
def test_an_entry_that_names_the_clause_of_other_cells_matches_nothing(other: Any) -> None:
    cells = [("errors.a", NEW_PMAP, "0.9.0", "cpu", "1x8")]
    assert len(unmatched((entry(), entry(**other)), cells)) == 1
    elsewhere = [("errors.a", SHARD_MAP, *cells[0][2:])]
    assert unmatched((entry(implementation=(NEW_PMAP,)),), elsewhere) != []


# The entries there are


@functools.cache
def published_cells() -> list[Cell]:
    """The cells of the published matrix that are run: neither removed nor without meaning."""
    return [
        (one.id, implementation, jax, platform, topology)
        for platform in PLATFORMS
        for one in real.catalogue().clauses.values()
        for topology in one.topologies
        if one.needs.unmet(Topology.parse(topology)) is None
        for implementation, expected in one.expect.items()
        if not isinstance(expected, NotApplicable)
        for jax in (ON_CUDA if platform == "cuda" else PUBLISHED)
        if implementation != LEGACY_PMAP or jax in WITH_LEGACY or one.selects
    ]


def unmatched(entries: Iterable[Deviation], cells: Sequence[Cell]) -> list[Deviation]:
    """The entries that match none of these cells."""
    every = tuple(entries)
    by_clause, matched = ByClause(every), set[int]()
    for cell in cells:
        some = (one for one in by_clause[cell[0]] if id(one) not in matched)
        matched.update(id(one) for one in some if one.matches(*cell))
    return [one for one in every if id(one) not in matched]


def described(entries: Iterable[Deviation]) -> list[str]:
    """Where each entry is, and what to do about one that matches no cell."""
    return [
        f"{one.where}: no published cell of {', '.join(one.clause)} under "
        f"{', '.join(one.implementation)} is one of its JAX versions, platforms and topologies: "
        "correct these, or remove the entry"
        for one in entries
    ]


def overdue(entries: Iterable[Deviation], today: datetime.date) -> list[Deviation]:
    """The entries whose review was due by `today`."""
    return [one for one in entries if one.review <= today]


def test_every_entry_is_about_a_published_cell() -> None:
    cells = published_cells()
    assert cells
    assert described(unmatched(real.entries(), cells)) == []


def test_every_clause_that_an_entry_names_has_a_cell_of_it() -> None:
    """A name of a list that matches nothing would go unnoticed behind the others."""
    alone = [replace(one, clause=(name,)) for one in real.entries() for name in one.clause]
    assert described(unmatched(alone, published_cells())) == []


def test_every_implementation_that_an_entry_names_has_a_cell_of_it() -> None:
    alone = [
        replace(one, implementation=(n,)) for one in real.entries() for n in one.implementation
    ]
    assert described(unmatched(alone, published_cells())) == []


def test_no_cell_is_claimed_twice() -> None:
    entries = real.entries()
    named = ByClause(entries)
    versions = {
        name: sorted({text for one in entries for text in _bounds(one.packages.get(name, ""))})
        for name in {name for one in entries for name in one.packages}
    }
    for cell in published_cells():
        some = named[cell[0]]
        if len(some) < 2:  # nothing else can claim the cell
            continue
        names = {name for one in some for name in one.packages}
        asked = [{name: text} for name in names for text in versions[name]]
        for packages in asked or [None]:
            matching(some, *cell, packages)


def _bounds(text: str) -> list[str]:
    """The versions that a range of a package names, and one that is older than any."""
    return ["0.0.1", *re.findall(r"[\d.]+\d", text)] if text else []


def test_no_review_is_overdue() -> None:
    assert overdue(real.entries(), datetime.date.today()) == []
    assert overdue([entry()], datetime.date(2027, 1, 31)) == [entry()]
    assert overdue([entry()], datetime.date(2027, 1, 30)) == []


def test_an_entry_of_several_steps_says_what_is_seen_in_which() -> None:
    """The judge refuses one pattern for all of them."""
    unclear = [
        entry.where
        for entry in real.entries()
        if entry.saw
        for id, clause in real.catalogue().clauses.items()
        if entry.names(id)
        for name in entry.implementation
        if name in clause.expect and len(steps_of(clause.expect[name])) > 1
    ]
    assert not unclear


def steps_of(expectation: Any) -> set[str]:
    """The steps that an expectation names."""
    if isinstance(expectation, All):
        return set[str]().union(*map(steps_of, expectation.parts))
    return set(getattr(expectation, "only", ()))


def test_every_entry_says_why_and_where_to_read_more() -> None:
    for one in real.entries():
        assert one.why.strip(), one
        assert one.link.strip(), one
        assert not one.explains([Finding("a step", 0, False, "it", "")], []), one
        assert not one.explains([], []), f"{one.seen!r} explains everything"


def test_entries_are_found_by_id_and_by_pattern_in_their_order() -> None:
    entries = [
        Deviation(clause, ("new_pmap",), datetime.date(2027, 1, 31))
        for clause in (("a.*", "b.c"), ("b.c",), ("a.b", "a.*"), ("*",), ("a.b.c",))
    ]
    found = deviations.ByClause(entries)
    for clause in ("a.b", "b.c", "a.b.c", "d"):
        assert list(found[clause]) == [one for one in entries if one.names(clause)]
    assert [len(found[clause]) for clause in ("a.b", "b.c", "a.b.c", "d")] == [3, 3, 4, 1]
