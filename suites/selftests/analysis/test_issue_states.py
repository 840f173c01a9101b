"""What is known of an issue in versions in which few of its tests ran, or none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.model.records import JAX, Cause
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.rewrites import Usage
from reports.analysis.issues.issue import Issue
from reports.analysis.issues.places import ONE, Where
from reports.analysis.issues.states import Found, Seen, State, timeline
from reports.store.order import LEGACY, NEW, SHARD_MAP

RAISES = Effect.RAISES
SHOWS = Seen(shows=True, effect=Effect.RAISES, holds=False)
MILD = Seen(shows=True, effect=Effect.LIES_ELSEWHERE, holds=False)
SAME = Seen(shows=True, effect=None, holds=False)
FINE = Seen(shows=False, effect=None, holds=True)
OTHER = Seen(shows=False, effect=None, holds=False, by="another", raises=True)
ALL = frozenset(("a", "b", "c"))
BOTH = {"a": SHOWS, "b": MILD, "c": SHOWS}
HIDDEN = dict.fromkeys(ALL, OTHER)
NONE = dict.fromkeys(ALL, FINE)


def states(seen: Mapping[str, Mapping[str, Seen]], *, bounded: bool = False) -> dict[str, Found]:
    judged = {jax: frozenset(tests) for jax, tests in seen.items()}
    return timeline([*seen], seen, judged, ALL, lambda *_: bounded)


def middle(before: dict[str, Seen], few: dict[str, Seen], after: dict[str, Seen]) -> Found:
    return states({"1": before, "2": few, "3": after})["2"]


def test_where_every_test_ran_they_say_what_is_so() -> None:
    found = states({"1": NONE, "2": HIDDEN, "3": BOTH, "4": dict.fromkeys(ALL, SAME)})

    assert [one.state for one in found.values()] == [
        State.FREE,
        State.OTHERWISE,
        State.AFFECTED,
        State.SAME,
    ]
    assert found["2"].by == ("another",)
    assert found["3"].effect is Effect.RAISES
    assert not any(one.of_others for one in found.values())


def test_what_passes_where_the_issue_shows_too_does_not_say_that_it_is_absent() -> None:
    """One test shows it on both sides, and fails otherwise between them; the others pass always."""
    shows = NONE | {"a": SHOWS}
    found = states({"1": shows, "2": NONE | {"a": OTHER}, "3": shows})["2"]

    assert (found.state, found.by) == (State.OTHERWISE, ("another",))
    assert states({"1": shows, "2": NONE | {"b": OTHER}, "3": shows})["2"].state is State.FREE


@pytest.mark.parametrize("around", [BOTH, NONE, HIDDEN, dict.fromkeys(ALL, SAME)])
def test_where_no_test_ran_nothing_is_said(around: dict[str, Seen]) -> None:
    assert middle(around, {}, around).state is State.NOT_TESTED


def test_the_issues_program_that_ran_there_confirms_both_sides() -> None:
    found = states({"1": BOTH, "2": {}, "3": BOTH}, bounded=True)["2"]

    assert (found.state, found.effect, found.between) == (State.AFFECTED, Effect.RAISES, True)
    assert states({"1": BOTH, "2": {}, "3": NONE}, bounded=True)["2"].state is State.NOT_TESTED


def test_tests_that_pass_with_an_error_are_counted() -> None:
    refused = FINE._replace(raises=True)
    found = states({"1": {"a": refused, "b": FINE, "c": FINE}, "2": NONE})

    assert (found["1"].state, found["1"].raising) == (State.FREE, (1, 3))
    assert found["2"].raising == (0, 3)


def test_a_milder_test_alone_does_not_change_the_effect() -> None:
    found = middle(BOTH, {"b": MILD}, BOTH)

    assert (found.effect, found.between) == (Effect.RAISES, True)


def test_few_tests_that_fail_otherwise_are_another_issue_as_on_both_sides() -> None:
    found = middle(HIDDEN, {"b": OTHER}, HIDDEN)

    assert (found.state, found.between) == (State.OTHERWISE, False)


def test_what_passes_beside_another_issue_is_counted() -> None:
    """Most of its tests fail there: it is another issue, with the number of those that raise."""
    one = {"a": OTHER, "b": FINE, "c": OTHER}
    found = middle(one, {"b": FINE}, one)

    assert (found.state, found.between, found.by) == (State.OTHERWISE, True, ("another",))
    assert states({"1": one, "2": BOTH})["1"].raising == (2, 3)


def test_few_tests_that_end_otherwise_than_on_both_sides_say_what_they_saw() -> None:
    found = middle(BOTH, {"a": FINE}, BOTH)

    assert (found.state, found.of_others) == (State.FREE, False)


def test_what_no_side_confirms_is_not_absent() -> None:
    telling = {"a": SHOWS, "b": FINE, "c": FINE}

    assert middle(telling, {"b": OTHER}, telling).state is State.NOT_TESTED
    assert middle(NONE, {"b": FINE}, telling).state is State.NOT_TESTED
    assert middle(NONE, {"a": FINE}, telling).state is State.FREE


def test_before_the_first_whole_version_it_is_shown_as_there_if_it_shows() -> None:
    found = states({"1": {"b": MILD}, "2": BOTH})["1"]

    assert (found.state, found.effect, found.beside) == (State.AFFECTED, Effect.RAISES, "2")
    assert states({"1": {"b": FINE}, "2": BOTH})["1"].state is State.FREE
    assert states({"1": {"b": FINE}, "2": {**BOTH, "b": FINE}})["1"].state is State.NOT_TESTED


@pytest.mark.parametrize(
    ("tags", "of_pmap"),
    [
        (("jax.shard_map", "auto="), False),
        (("jax.shard_map", "jax.pmap"), True),
        (("jax.make_mesh",), True),
        ((), True),
    ],
)
def test_plain_programs_of_shard_map_say_nothing_of_pmap(
    tags: tuple[str, ...], of_pmap: bool
) -> None:
    cause = Cause("auto", "errors", "title", "sentence", "implementation", tags, (), (), "", "", "")
    issue = Issue(cause, Usage.COMMON, rows={(JAX, ONE): {"0.9.0": Found(State.AFFECTED, RAISES)}})
    assert issue.at(Where(SHARD_MAP, "0.9.0")) is RAISES
    for pmap in (LEGACY, NEW):
        assert (issue.at(Where(pmap, "0.9.0")) is RAISES) == of_pmap
