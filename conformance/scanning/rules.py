"""The rules of a scan: those of the known issues that change something between the two sides."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from conformance.catalogue.causes import Cause, Shows
from conformance.catalogue.finds import CALL, NAME, OUTPUT, REQUIREMENT, TEXT, Find
from conformance.scanning.events import Event
from conformance.scanning.findings import ORDER, UNCHANGED, Change, Issue
from conformance.scanning.names import canonical
from conformance.scanning.values import EXPLICIT, GLOBAL, PMAP, SHARD_MAP
from conformance.spec.names import JAX


@dataclass(frozen=True, slots=True)
class Side:
    """One end of an upgrade: an implementation in one JAX."""

    implementation: str
    jax: str

    def __str__(self) -> str:
        return f"{self.implementation}@{self.jax}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a known issue that changes something."""

    find: Find
    issue: Issue


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a scan, by their events."""

    by_event: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    by_name: Mapping[tuple[str, str], tuple[Rule, ...]] = field(default_factory=dict)

    def of_event(self, event: str) -> tuple[Rule, ...]:
        """Return the rules about events of a kind."""
        return self.by_event.get(event, ())

    def about(self, event: Event) -> Iterator[Rule]:
        """Yield the rules that may match an event: all of its kind, or those of its names."""
        names = event.attributes.get("name")
        if names is None:
            yield from self.of_event(event.kind)
            return
        seen: set[int] = set()
        for name in names:
            for rule in self.by_name.get((event.kind, name), ()):
                if id(rule) not in seen:
                    seen.add(id(rule))
                    yield rule

    def names(self) -> frozenset[str]:
        """Return the qualified names that rules are about."""
        return frozenset(name for _, name in self.by_name)

    def needed(self) -> frozenset[str]:
        """Return the requirements that make rules superfluous."""
        some = (rule.find.needs for each in self.by_event.values() for rule in each)
        return frozenset(filter(None, some))

    def without(self, needs: Collection[str]) -> Rules:
        """Return the rules but for those that only matter without certain requirements."""

        def kept(some: tuple[Rule, ...]) -> tuple[Rule, ...]:
            return tuple(rule for rule in some if rule.find.needs not in needs)

        return Rules(
            {event: kept(some) for event, some in self.by_event.items()},
            {key: kept(some) for key, some in self.by_name.items()},
        )

    def texts(self) -> tuple[tuple[re.Pattern[str], Rule], ...]:
        """Return the patterns of all rules about lines of text, each with its rule."""
        return tuple(
            (re.compile(text), rule)
            for rule in self.of_event(TEXT)
            for text in sorted(rule.find.where.get("text", ()))
        )


def rules(
    issues: Iterable[tuple[Cause, Change]], old: Side, new: Side, *, unchanged: bool = False
) -> Rules:
    """Return the rules of known issues, each with what it changes.

    With `unchanged` also those about uses that both sides treat alike, of an issue that changes
    others.
    """
    found: dict[str, list[Rule]] = {}
    # What the code maps with now: what it maps with otherwise does not move.
    other = PMAP if old.implementation == SHARD_MAP else SHARD_MAP
    for cause, change in issues:
        issue = Issue(
            cause.slug,
            cause.title,
            cause.sentence,
            cause.edit,
            cause.links,
            cause.remedies,
            cause.file,
            change,
        )
        for find in cause.finds:
            own = _own(find, change, old)
            if own.severity == UNCHANGED != change.severity and not unchanged:
                continue
            if find.to in ("", new.implementation) and _concerns(find, cause, own, new):
                rule = Rule(_canonical(find, other), replace(issue, change=own))
                found.setdefault(find.event, []).append(rule)
    by_name: dict[tuple[str, str], list[Rule]] = {}
    for event, some in found.items():
        for rule in some:
            for name in rule.find.where.get("name", ()):
                by_name.setdefault((event, name), []).append(rule)
    return Rules(
        {event: tuple(some) for event, some in found.items()},
        {key: tuple(some) for key, some in by_name.items()},
    )


def _concerns(find: Find, cause: Cause, change: Change, new: Side) -> bool:
    """Return whether a rule is about what a known issue changes, or about what both sides have."""
    if change.severity == UNCHANGED:
        return bool(_shown(cause, new, find.asked))
    return not find.asked or bool(find.effect)


def _own(find: Find, change: Change, old: Side) -> Change:
    """Return the one effect that a rule is about, if the issue has several, and no more than it
    allows; none, if its use changes only for programs that leave another implementation.
    """
    if find.leaving not in ("", old.implementation):
        return replace(change, severity=UNCHANGED, effects=())
    if find.at_most and ORDER[find.at_most] > ORDER[change.severity]:
        return replace(change, severity=find.at_most)
    if find.effect not in change.effects:
        return change
    return replace(change, severity=find.effect, effects=(find.effect,))


def _canonical(find: Find, other: str) -> Find:
    """Return a rule with canonical function names, for one kind of mapped function."""
    where, unless = dict(find.where), dict(find.unless)
    if "name" in where and find.event != NAME:  # which has a name as it is written as well
        where["name"] = where["name"] | frozenset(map(canonical, where["name"]))
    if find.event in (TEXT, REQUIREMENT, NAME, CALL):
        return replace(find, where=where)
    key = "of" if find.event == OUTPUT else "map"
    elsewhere = set() if find.asked else {other}
    if key == "of" and GLOBAL not in where.get(key, frozenset()):
        elsewhere.add(GLOBAL)  # an array that the program made by itself, in any JAX alike
    if key == "of" and EXPLICIT not in where.get(key, frozenset()):
        elsewhere.add(EXPLICIT)
    unless[key] = unless.get(key, frozenset()) | elsewhere | {f"row of {one}" for one in elsewhere}
    return replace(find, where=where, unless=unless)


# What changes


def changes(
    causes: Mapping[str, Cause],
    published: Mapping[str, Change],
    old: Side,
    new: Side,
    *,
    unchanged: bool = False,
) -> list[tuple[Cause, Change]]:
    """Return the known issues that change something from one side to another.

    `published` is what the cells of the published matrix say. If an issue has no comparable cells,
    its program decides: what it shows on each side.
    """
    found: list[tuple[Cause, Change]] = []
    for slug, cause in causes.items():
        change = published.get(slug) or _by_program(cause, old, new)
        if (
            change is None
            and unchanged
            and any(_shown(cause, new, one.asked) for one in cause.finds)
        ):
            change = Change(UNCHANGED, processes=_processes(cause))
        if change is not None:
            found.append((cause, change))
    return found


def _by_program(cause: Cause, old: Side, new: Side) -> Change | None:
    """Return what its program does on the new side only; None if equal or unknown."""
    effect = next((find.effect for find in cause.finds if find.effect), "")
    asked = next((find.asked for find in cause.finds if find.asked), "")
    if not effect:
        return None
    before, after = _shown(cause, old, asked), _shown(cause, new, asked)
    if not after or after == before:
        return None
    return Change(effect, (effect,), _processes(cause))


def _shown(cause: Cause, side: Side, asked: str = "") -> frozenset[tuple[str, str, str]]:
    """Return what the program shows on a side, on any topology."""
    implementations = {side.implementation, JAX, *([asked] if asked else [])}
    return frozenset(
        (one.prints, one.raises, one.ends)
        for one in cause.shows
        if not implementations.isdisjoint(one.implementation) and _in_jax(one, side.jax)
    )


def _in_jax(shows: Shows, jax: str) -> bool:
    try:
        return SpecifierSet(shows.jax).contains(Version(jax), prereleases=True)
    except InvalidVersion:
        return False


def _processes(cause: Cause) -> tuple[str, ...]:
    """Return with how many processes its program shows it, as far as it says."""
    places = {place for one in cause.shows for place in one.topology}
    return () if any(place.startswith("1x") for place in places) else ("several",)


def most_severe(changes: Iterable[Change]) -> Change:
    """Join several changes of one issue."""
    some = sorted(changes, key=lambda one: (ORDER[one.severity], one.refused))
    effects = tuple(dict.fromkeys(effect for one in some for effect in one.effects))
    processes = tuple(sorted({word for one in some for word in one.processes}))
    return Change(some[0].severity, effects, processes, some[0].refused)
