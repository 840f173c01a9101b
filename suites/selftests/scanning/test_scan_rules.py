"""Rules of a scan: each known issue has one or says why not, and what is refused in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from scanned_programs import NEW, OLD, rules_between

from conformance.catalogue.causes import Cause, load_causes
from conformance.catalogue.finds import EVENTS, Find, FindError, parse_finds
from conformance.catalogue.loading import load
from conformance.scanning.events import matches
from conformance.scanning.findings import UNCHANGED, Change
from conformance.scanning.rules import Side, changes

CAUSES = load_causes()


@pytest.mark.parametrize("slug", CAUSES)
def test_a_known_issue_has_a_rule_or_says_why_not(slug: str) -> None:
    cause = CAUSES[slug]
    assert bool(cause.finds) != bool(cause.find_none)


def test_what_a_rule_says_to_be_proved_is_a_clause() -> None:
    proofs = {find.proved for one in CAUSES.values() for find in one.finds if find.proved}
    assert proofs
    assert proofs <= {*load().clauses}


def test_every_kind_of_event_has_a_rule() -> None:
    assert {find.event for one in CAUSES.values() for find in one.finds} == {*EVENTS}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ([], r"write each rule as \[\[find\]\]"),
        ("call", r"write each rule as \[\[find\]\]"),
        ([{}], "event '' is none of name, call"),
        ([{"event": "calls"}], "event 'calls' is none of"),
        ([{"event": "call"}], "would match every such event"),
        ([{"event": "call", "of": "pmap"}], "event call has no of"),
        ([{"event": "call", "name": []}], "name must be a text or texts"),
        ([{"event": "call", "name": 3}], "name must be a text or texts"),
        ([{"event": "call", "name": "jax.jit", "says": ""}], "says must be a text"),
        (
            [{"event": "call", "name": "jax.jit", "effect": "bad"}],
            "effect is 'bad'; give one of",
        ),
        ([{"event": "call", "name": "jax.jit", "proved": "a.b"}], "rewriting in after: add after"),
        ([{"event": "call", "name": "jax.jit", "needs": "flax>="}], "is not a requirement"),
        ([{"event": "call", "name": "jax.jit", "unless": {"use": "x"}}], "unless is a table of"),
        ([{"event": "text", "text": "("}], "is not a regular expression"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said(raw: Any, says: str) -> None:
    with pytest.raises(FindError, match=says):
        parse_finds(raw)


@pytest.mark.parametrize(
    ("where", "unless", "attributes", "found"),
    [
        ({"use": {"index"}}, {}, {"use": {"index"}}, True),
        ({"use": {"index"}}, {}, {"use": {"slice"}}, False),
        ({"use": {"index", "slice"}}, {}, {"use": {"slice"}}, True),
        ({"use": {"index"}, "of": {"pmap"}}, {}, {"use": {"index"}}, False),
        ({"use": {"index"}}, {"value": {"a"}}, {"use": {"index"}, "value": {"a"}}, False),
        ({"value": {"a and b"}}, {}, {"value": {"a"}}, False),
        ({"value": {"a and b"}}, {}, {"value": {"a", "b"}}, True),
    ],
)
def test_a_rule_matches_what_has_its_words(
    where: Mapping[str, set[str]],
    unless: Mapping[str, set[str]],
    attributes: Mapping[str, set[str]],
    found: bool,
) -> None:
    find = Find("output", frozen(where), frozen(unless))
    assert matches(find, "output", frozen(attributes)) is found
    assert not matches(find, "call", frozen(attributes))


def frozen(some: Mapping[str, set[str]]) -> Mapping[str, frozenset[str]]:
    return {key: frozenset(words) for key, words in some.items()}


# What changes between two sides


def slugs(
    old: str, new: str, published: Mapping[str, Change], *, unchanged: bool = False
) -> set[str]:
    sides = Side(*old.split("@")), Side(*new.split("@"))
    return {cause.slug for cause, _ in changes(CAUSES, published, *sides, unchanged=unchanged)}


def test_an_issue_without_effect_has_no_rule() -> None:
    some = {
        rule.issue.slug for found in rules_between(OLD, NEW).by_event.values() for rule in found
    }
    assert "merge-option-gone" in some
    later = rules_between("new_pmap@0.10.0", NEW)
    assert "merge-option-gone" not in {
        rule.issue.slug for found in later.by_event.values() for rule in found
    }


def test_a_program_that_shows_something_else_is_a_change() -> None:
    assert "merge-variable-ignored" in slugs("new_pmap@0.9.0", NEW, {})
    assert "merge-variable-ignored" not in slugs("new_pmap@0.10.0", NEW, {})


def test_what_both_sides_have_is_reported_when_it_is_asked_for() -> None:
    some = slugs("new_pmap@0.10.0", NEW, {}, unchanged=True)
    assert "merge-flag-gone" in some
    sides = Side("new_pmap", "0.10.0"), Side("new_pmap", "0.12.0.1")
    some_changes = changes(CAUSES, {}, *sides, unchanged=True)
    found = {cause.slug: change for cause, change in some_changes}
    assert found["merge-flag-gone"].severity == UNCHANGED


def test_rules_are_about_what_the_code_maps_with_now() -> None:
    pmaps = rules_between(OLD, "shard_map@0.12.0.1")
    shard_maps = rules_between("shard_map@0.8.3", "shard_map@0.12.0.1")
    for some, other in ((pmaps, "shard_map"), (shard_maps, "pmap")):
        (rule, *_) = some.of_event("output")
        assert other in rule.find.unless["of"]


def test_a_cause_has_the_rules_of_its_file() -> None:
    cause: Cause = CAUSES["pmap-sharding-gone"]
    assert [find.where["name"] for find in cause.finds] == [{"jax.sharding.PmapSharding"}]
