"""A page per version of JAX: what changed since the previous one, and what is dangerous."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from conformance.model.verdicts import Verdict
from reports.analysis.effects.changed import Entry, Group, Upgrade
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.hazards import Hazard, averts, joined, of_version
from reports.analysis.effects.pairs import Effects, sides
from reports.analysis.effects.upgrade import upgrade
from reports.analysis.issues.places import ONE, SEVERAL, Where, existing, jax_versions
from reports.analysis.issues.risk import risk
from reports.render.site.entries import GroupView, group_views
from reports.render.site.hazards import PAGE as HAZARDS
from reports.render.site.hazards import hazard_anchor, title_of
from reports.render.site.names import (
    Link,
    cause_path,
    claim_path,
    implementation_words,
    safe_name,
    version_path,
)
from reports.render.site.page import Page
from reports.store.order import implementation_order
from reports.store.outcomes import RAN
from reports.store.results import Results


@dataclass(frozen=True, slots=True)
class Step:
    """One implementation from the previous version to this one."""

    title: str
    found: Upgrade
    groups: tuple[GroupView, ...]


@dataclass(frozen=True, slots=True)
class Turned:
    """A claim that became true or false, and in how many cells."""

    claim: Link
    cells: int


@dataclass(frozen=True, slots=True)
class HazardLine:
    """A hazard of this version: where it shows, and what averts it."""

    effect: str
    title: str
    href: str
    where: str
    edit: str


@dataclass(frozen=True, slots=True)
class RiskList:
    """The issues of one severity in this version; `anchor` is where counts of other pages lead."""

    anchor: str
    words: str
    issues: tuple[tuple[str, Link], ...]


ANY_FATAL = "fatal"  # the anchor of all issues that crash or hang


def risk_href(where: Where, processes: str, severity: str) -> str:
    """Return the address of the list of the issues that were counted."""
    return f"{version_path(where.jax)}#{_anchor(where, processes, severity)}"


def _anchor(where: Where, processes: str, severity: str) -> str:
    return safe_name(f"{where.implementation}-{processes}-{severity}")


@dataclass
class VersionView:
    """One version; computed when its page is rendered."""

    effects: Effects
    jax: str
    before: str
    dangers: Sequence[Hazard]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Return what changed, for each implementation that both versions have."""
        found = []
        there = sides(self.effects.results)
        for new in there:
            if new.jax != self.jax:
                continue
            for old in there:
                if old.jax == self.before and old.implementation == new.implementation:
                    done = _compared(upgrade(self.effects, old, new))
                    words = implementation_words(new.implementation)
                    groups = group_views(self.effects.results, done)
                    found.append(Step(words[:1].upper() + words[1:], done, groups))
        return tuple(found)

    @cached_property
    def risks(self) -> tuple[tuple[str, tuple[RiskList, ...]], ...]:
        """The issues that an ordinary program can meet, by implementation, processes, severity."""
        found = []
        there = (where for where in existing(self.effects.results) if where.jax == self.jax)
        for where in sorted(there, key=lambda one: implementation_order(one.implementation)):
            words = implementation_words(where.implementation)
            for kind, processes in ((ONE, "one process"), (SEVERAL, "several processes")):
                lists = self._lists(where, kind)
                if any(one.issues for one in lists):
                    found.append((f"{words[:1].upper()}{words[1:]}, {processes}", lists))
        return tuple(found)

    def _lists(self, where: Where, kind: str) -> tuple[RiskList, ...]:
        one = risk(self.effects, where, kind)
        if one is None:
            return ()
        named = [(severity.value, severity.words, some) for severity, some in one.counted]
        named.append((ANY_FATAL, "crashes and hangs, also of unusual arguments", one.fatal))
        return tuple(
            RiskList(
                _anchor(where, kind, name),
                words,
                tuple(
                    (
                        effect.value,
                        Link(issue.cause.title, cause_path(issue.cause.cause)),
                    )
                    for issue in some
                    if (effect := issue.at(where, kind)) is not None
                ),
            )
            for name, words, some in named
        )

    @cached_property
    def became_false(self) -> tuple[Turned, ...]:
        """The claims that are false here and were true in the version before."""
        return _turned(self.effects.results, self.before, self.jax, to_true=False)

    @cached_property
    def became_true(self) -> tuple[Turned, ...]:
        """The claims that are true here and were false in the version before."""
        return _turned(self.effects.results, self.before, self.jax, to_true=True)

    @cached_property
    def hazards(self) -> tuple[HazardLine, ...]:
        """The hazards of this version, a line each."""
        results = self.effects.results
        return tuple(
            HazardLine(
                one.danger.value if one.danger.value != "works once, then fails" else "raises",
                title_of(results, one),
                f"{HAZARDS}#{hazard_anchor(one)}",
                self._where(one),
                averts(self.effects, one, self.jax),
            )
            for one, _ in joined(of_version(self.dangers, self.jax))
        )

    def _where(self, hazard: Hazard) -> str:
        shown = ((name, hazard.topologies(name, self.jax)) for name in hazard.implementations)
        return "; ".join(
            f"{implementation_words(name)} {', '.join(some)}" for name, some in shown if some
        )

    @property
    def dangers_text(self) -> str:
        """Return how many hazards there are of each effect."""
        counted = Counter(Effect(one.effect).words for one in self.hazards)
        return ", ".join(f"{effect}: {count}" for effect, count in counted.items())


def pages(effects: Effects, dangers: Sequence[Hazard]) -> Iterator[Page]:
    """Yield a page for each version."""
    results = effects.results
    versions = jax_versions(results)
    if not versions:
        return
    views = [
        VersionView(effects, jax, before, dangers)
        for before, jax in zip(["", *versions], versions, strict=False)
    ]
    for view in views:
        yield Page(
            version_path(view.jax),
            "version",
            view,
            f"What changed in JAX {view.jax}",
            f"What JAX {view.jax} changes, against {view.before or 'nothing: the first tested'}.",
        )


def _compared(found: Upgrade) -> Upgrade:
    """Return the changes only, without what was not run before and remedies that did not work then
    either.

    Hazards are listed separately.
    """
    return found.only(_is_new)


def _is_new(entry: Entry) -> bool:
    if entry.group is Group.FIX_FAILS:
        return any(one.before is Verdict.CONFORMS for one in entry.seen)
    return entry.compared


def _turned(results: Results, before: str, after: str, *, to_true: bool) -> tuple[Turned, ...]:
    """Return the claims of which a cell became true, or false, between two versions."""
    ran = _ran(results)
    old = dict(ran.get(before, ()))
    counted: dict[str, int] = {}
    for place, verdict in ran.get(after, ()):
        was = old.get(place)
        is_true, was_true = verdict is Verdict.CONFORMS, was is Verdict.CONFORMS
        if was is not None and is_true is to_true and was_true is not to_true:
            slug = results.clauses[place.clause].claim
            counted[slug] = counted.get(slug, 0) + 1
    return tuple(
        Turned(_claim_link(results, slug), count)
        for slug, count in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    )


class _Place(NamedTuple):
    """Where a cell was run, whatever the version."""

    clause: str
    implementation: str
    topology: str


@lru_cache(maxsize=1)  # every version asks of two
def _ran(results: Results) -> Mapping[str | None, Sequence[tuple[_Place, Verdict]]]:
    """Return what was run in each version, and how it ended."""
    found: dict[str | None, list[tuple[_Place, Verdict]]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            place = _Place(key.clause, key.implementation, key.topology)
            found.setdefault(key.target.jax, []).append((place, outcome.verdict))
    return found


def _claim_link(results: Results, slug: str) -> Link:
    claim = results.claims.get(slug)
    return Link(claim.statement, claim_path(claim)) if claim else Link(slug, "")
