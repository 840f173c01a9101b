"""A page per clause: what happened, newest first, equal outcomes of several versions joined.

The evidence is folded below, because a reader wants first what their code would meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from conformance.model.records import JAX, Cause, Claim, Clause, Deviation, Strength
from conformance.model.verdicts import Verdict
from reports.analysis.effects.effect import Effect, ShownEffect
from reports.analysis.effects.happened import ABSENT
from reports.analysis.effects.pairs import Effects, Side
from reports.analysis.issues.places import existing
from reports.render.site.columns import Column, columns
from reports.render.site.evidence import (
    AROUND,
    Evidence,
    FindingView,
    Views,
    evidence,
    findings,
    timing_text,
)
from reports.render.site.marks import Mark, mark_of
from reports.render.site.names import (
    Link,
    cause_link,
    cell_anchor,
    claim_path,
    clause_link,
    clause_path,
    implementation_words,
    matrix_path,
    safe_name,
)
from reports.render.site.page import Page
from reports.render.site.strips import expectations_held, ranges, versions
from reports.render.site.targets import run_anchor
from reports.render.site.text import shortened
from reports.render.site.user_reports import reports_of
from reports.store.alike import failed
from reports.store.order import NEW, implementation_order
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results
from reports.store.shown import why_not_run

# Characters of evidence on a page; the rest is one command away. What is wrong needs more.
_WRONG_SIZE, _RIGHT_SIZE = 740, 575
_SEEN_AT_ONCE = 4  # outcomes of all implementations
_NOT_RIGHT = {Mark.WRONG, Mark.PARTLY}
_REASON_SHOWN = 500
_FINDINGS_SHOWN = 3
_VARIES = re.compile(r"[\d.,\s…\[\]()x:#-]+")
_KEPT = 120  # characters by which two reasons are known to be the same
_REASONS_KEPT = 1024  # in memory at once: those of a page repeat each other


@lru_cache(_REASONS_KEPT)
def _known_by(reason: str) -> str:
    """Return a grouping key of reasons that differ in numbers only."""
    return _VARIES.sub("#", reason)[:_KEPT]


def _why_once(deviation: Deviation | None, explained: set[tuple[str, str]]) -> str:
    """Return why an outcome deviates; empty if it was `explained` of its known issue before."""
    if deviation is None:
        return ""
    this = (deviation.cause, deviation.why)
    if deviation.cause and this in explained:
        return ""
    explained.add(this)
    return deviation.why


@dataclass(frozen=True, slots=True)
class Seen:
    """A cell with its description."""

    key: CellKey
    number: int
    outcome: Outcome
    mark: Mark
    words: str
    deviation: Deviation | None

    @property
    def alike(self) -> tuple[object, ...]:
        """Return a grouping key of cells with the same description."""
        why = (self.deviation.cause or self.deviation.why) if self.deviation else ""
        # What a conforming cell communicated or compiled differs between versions, and matters.
        return self.outcome.verdict, self.words, why or _known_by(self.outcome.reason)


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """One outcome of an implementation and where it occurred: expectation and observation.

    `why` explains a deviation; empty if another outcome above has the same known issue and text.
    """

    anchor: str
    mark: Mark
    words: str
    places: tuple[str, ...]
    expected: str
    reason: str
    failed: tuple[FindingView, ...]
    shown: ShownEffect | None
    deviation: Deviation | None
    why: str
    cause: Link | None
    evidence: tuple[Evidence, ...]
    absent: bool


@dataclass(frozen=True, slots=True)
class Implementation:
    """The outcomes under an implementation, newest first."""

    name: str
    outcomes: tuple[OutcomeView, ...]


Span = tuple[Mark, str, str, str]  # mark, words, versions, anchor of the outcome


@dataclass(frozen=True, slots=True)
class Glance:
    """A row of the overview: for a topology, what happened in which versions."""

    implementation: str
    topologies: tuple[tuple[str, str], ...]  # each with the anchor of its cells
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class ClausePage:
    """Everything about one clause, computed when the page is rendered."""

    effects: Effects
    clause: Clause
    columns: tuple[Column, ...]
    fixed_by: tuple[Link, ...]
    views: Views
    runs: Mapping[str, str]  # the anchor of each run's environment
    fails: str  # where the newest JAX does not do what the title says; empty if it always does

    @property
    def results(self) -> Results:
        """The merged results of the site."""
        return self.effects.results

    @property
    def claim(self) -> Claim | None:
        """The claim that the clause tests; None if the results file lacks it."""
        return self.results.claims.get(self.clause.claim)

    @property
    def silent(self) -> bool:
        """Return whether no document mentions it, so that legacy pmap is the reference."""
        return self.claim is not None and self.claim.silent

    @property
    def claim_href(self) -> str:
        """The address of the claim's page; empty without a claim."""
        claim = self.claim
        return claim_path(claim) if claim else ""

    @property
    def section_href(self) -> str:
        """The address of the matrix of its subject."""
        return matrix_path(self.clause.section)

    @property
    def reported(self) -> tuple[Link, ...]:
        """The user reports that this clause shows."""
        return reports_of(clause=self.clause.clause)

    @property
    def cause(self) -> Cause | None:
        """The known issue that the clause shows although it conforms, if any."""
        return self.results.causes.get(self.clause.cause)

    @property
    def cause_link(self) -> Link:
        """The link to that known issue."""
        return cause_link(self.results, self.clause.cause)

    @cached_property
    def expected(self) -> str:
        """What every outcome of the page should be; empty if implementations differ."""
        shown = (one for some in self.implementations for one in some.outcomes if not one.absent)
        texts = {one.expected for one in shown}
        return texts.pop() if len(texts) == 1 else ""

    def repeats(self, outcome: OutcomeView) -> bool:
        """Return whether an outcome is told as one of the baseline's on this page."""
        if outcome.shown is None or outcome.shown.effect is not Effect.SAME or outcome.deviation:
            return False
        baseline = self._baseline_side
        return any(
            (one.words, one.reason, one.failed) == (outcome.words, outcome.reason, outcome.failed)
            for some in self.implementations
            if baseline is not None and some.name == baseline.implementation
            for one in some.outcomes
            if one.anchor != outcome.anchor
        )

    @property
    def strength(self) -> Strength | None:
        """The clause's strength; None if it was not measured."""
        return self.results.strength.get(self.clause.clause)

    @property
    def fixes(self) -> Link | None:
        """The link to the clause whose error this one remedies, if any."""
        return clause_link(self.results, self.clause.fixes) if self.clause.fixes else None

    @property
    def baseline(self) -> Column | None:
        """The column that effects are compared with; None if no cell of it was run."""
        return next((column for column in self.columns if column.baseline), None)

    def compared_with(self, implementation: str) -> str:
        """What an implementation's outcomes are compared with; empty without a baseline."""
        if self.baseline is None:
            return ""
        before = JAX if implementation == JAX else self.baseline.side.implementation
        return f"{implementation_words(before)} in {self.baseline.version}"

    @property
    def _baseline_side(self) -> Side | None:
        return self.baseline.side if self.baseline else None

    @property
    def not_run(self) -> tuple[tuple[str, str], ...]:
        """The topologies of these results for which the clause is not declared, by reason."""
        here, found = self.results.grid[self.clause.clause], dict[str, list[str]]()
        for one in self.results.topologies:
            if one not in here:
                found.setdefault(why_not_run(self.clause, one), []).append(one)
        return tuple((", ".join(some), reason) for reason, some in found.items())

    @cached_property
    def implementations(self) -> tuple[Implementation, ...]:
        """The results by implementation: new pmap first, the baseline last."""
        marks = {seen.mark for seen in self._seen}
        budget = _Budget(_WRONG_SIZE if marks & _NOT_RIGHT else _RIGHT_SIZE)
        explained = set[tuple[str, str]]()
        return tuple(
            Implementation(name, tuple(self._groups_shown(name, budget, explained)))
            for name in sorted(
                self.results.columns(self.clause.clause),
                # The baseline last: it is what the others are compared with.
                key=lambda name: (
                    name != NEW,
                    self.baseline is not None and name == self.baseline.side.implementation,
                    implementation_order(name),
                ),
            )
        )

    @property
    def overview(self) -> bool:
        """Return whether there are too many outcomes to see without a table."""
        return sum(len(one.outcomes) for one in self.implementations) > _SEEN_AT_ONCE

    def anchors(self, implementation: str) -> list[str]:
        """The anchors of an implementation's cells, where no overview has them."""
        topologies = () if self.overview else self.results.grid[self.clause.clause]
        return [cell_anchor(implementation, one) for one in topologies]

    @property
    def glances(self) -> tuple[Glance, ...]:
        """The overview, in the order of the sections below it."""
        rows: dict[tuple[str, str], list[Seen]] = {}
        for seen in self._seen:
            rows.setdefault((seen.key.implementation, seen.key.topology), []).append(seen)
        found: dict[tuple[str, tuple[Span, ...]], list[tuple[str, str]]] = {}
        for one in self.implementations:
            for topology in self.results.grid[self.clause.clause]:
                row = rows.get((one.name, topology), [])
                alike = found.setdefault((one.name, tuple(self._spans(row))), [])
                alike.append((topology, cell_anchor(one.name, topology)))
        return tuple(Glance(name, tuple(on), spans) for (name, spans), on in found.items())

    def _spans(self, row: list[Seen]) -> Iterator[Span]:
        """Yield what happened on a topology, each outcome once with its versions, newest first."""
        spans: dict[tuple[Mark, str], list[Seen]] = {}
        for seen in row:
            spans.setdefault((seen.mark, seen.words), []).append(seen)
        for (mark, words), some in spans.items():
            yield mark, words, self._ranges(some), self._outcome_anchor(some[0])

    @cached_property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Where, of which versions, core tests were run but not this one; everywhere if empty."""
        found: dict[str, list[str]] = {}
        for number, name in enumerate(self._named):
            missing = tuple(self._missing(number))
            if missing:
                where = "" if missing == self.results.grid[self.clause.clause] else missing
                found.setdefault(", ".join(where), []).append(name)
        return tuple((where, ranges(self._named, some)) for where, some in found.items())

    def _missing(self, number: int) -> Iterator[str]:
        """Yield the topologies on which a version has no cell, or its implementations if it has
        some.
        """
        jax = self.results.targets[number].jax or ""
        there = {one.implementation for one in existing(self.results) if one.jax == jax}
        if there:
            there.add(JAX)  # what maps nothing needs no implementation of a map
        names = [name for name in self.results.columns(self.clause.clause) if name in there]
        if not names:
            return
        for topology in self.results.grid[self.clause.clause]:
            missing = [name for name in names if (number, name, topology) not in self._numbered]
            if missing == names:
                yield topology
            else:
                yield from (f"{implementation_words(name)} on {topology}" for name in missing)

    def _ranges(self, some: Iterable[Seen]) -> str:
        """Versions as ranges, over those in which the cells of this place were to run."""
        numbers = {one.number for one in some}
        places = {(one.key.implementation, one.key.topology) for one in some}
        there = {
            one.number for one in self._seen if (one.key.implementation, one.key.topology) in places
        }
        named = [self._named[number] for number in sorted(there)]
        return ranges(named, [self._named[number] for number in numbers])

    @property
    def timings(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The time lane's measurements, by version and place, newest first."""
        found = []
        for seen in self._seen:
            lines = self.results.timings.get(seen.key, ())
            if lines:
                version = self._named[seen.number]
                where = f"{version}, {seen.key.implementation} on {seen.key.topology}"
                found.append(
                    (
                        seen.number,
                        where,
                        tuple(f"{one.timing}, {timing_text(one)}" for one in lines),
                    )
                )
        found.sort(key=lambda one: -one[0])
        return tuple((where, lines) for _, where, lines in found)

    @cached_property
    def _named(self) -> tuple[str, ...]:
        return versions(self.results)

    @cached_property
    def _seen(self) -> tuple[Seen, ...]:
        """Yield every expected cell, newest first."""
        results = self.results
        found = []
        for number, target in reversed(list(enumerate(results.targets))):
            at = target.key
            for implementation in results.columns(self.clause.clause):
                for topology in results.grid[self.clause.clause]:
                    key = CellKey(self.clause.clause, at, implementation, topology)
                    outcome = results.outcome(key)
                    if outcome.verdict is Verdict.LEFT_OUT:
                        continue
                    run = outcome.runs[-1] if outcome.runs else None
                    found.append(
                        Seen(
                            key,
                            number,
                            outcome,
                            mark_of(outcome.verdict),
                            self.effects.happened(key),
                            run.cell.deviation if run else None,
                        )
                    )
        return tuple(found)

    @cached_property
    def _numbered(self) -> frozenset[tuple[int, str, str]]:
        return frozenset(
            (one.number, one.key.implementation, one.key.topology) for one in self._seen
        )

    def _outcome_anchor(self, seen: Seen) -> str:
        """Return the anchor of an outcome of an implementation."""
        known = self._outcomes.setdefault(seen.key.implementation, {})
        number = known.setdefault(seen.alike, len(known) + 1)
        return safe_name(f"o-{seen.key.implementation}.{number}")

    @cached_property
    def _outcomes(self) -> dict[str, dict[tuple[object, ...], int]]:
        return {}

    def _groups_shown(
        self, implementation: str, budget: _Budget, explained: set[tuple[str, str]]
    ) -> Iterator[OutcomeView]:
        groups: dict[tuple[object, ...], list[Seen]] = {}
        for seen in self._seen:
            if seen.key.implementation == implementation:
                groups.setdefault(seen.alike, []).append(seen)
        for some in groups.values():
            first = some[0]
            runs = first.outcome.runs
            yield OutcomeView(
                anchor=self._outcome_anchor(first),
                mark=first.mark,
                words=first.words,
                places=self._places(some),
                expected=self.clause.expected.get(implementation, "nothing is said"),
                reason=shortened(first.outcome.reason, _REASON_SHOWN),
                failed=findings(f for r in runs[-1:] for f in failed(r.cell))[:_FINDINGS_SHOWN],
                shown=self.effects.from_baseline(first.key, self._baseline_side),
                deviation=first.deviation,
                why=_why_once(first.deviation, explained),
                cause=self._cause(first.deviation),
                evidence=tuple(budget.spend(self._evidence(some))),
                absent=first.outcome.verdict in ABSENT,
            )

    def _cause(self, deviation: Deviation | None) -> Link | None:
        if deviation is None or deviation.cause not in self.results.causes:
            return None
        return cause_link(self.results, deviation.cause)

    def _evidence(self, some: list[Seen]) -> Iterator[Evidence]:
        """Yield the newest record with one process and with several; all if runs disagree."""
        named, done = self._named, set()
        for seen in some:
            several = not seen.key.topology.startswith("1x")
            if several not in done or len(seen.outcome.runs) > 1:
                done.add(several)
                for run in seen.outcome.runs:
                    yield evidence(run, named[seen.number], seen.key.topology, self.views)

    def _places(self, some: list[Seen]) -> tuple[str, ...]:
        """Return where an outcome was seen: "0.10.0 to 0.12.0.1 on 1x8, 4x2"."""
        by_topology: dict[str, list[Seen]] = {}
        for seen in some:
            by_topology.setdefault(seen.key.topology, []).append(seen)
        by_range: dict[str, list[str]] = {}
        for topology, there in by_topology.items():
            by_range.setdefault(self._ranges(there), []).append(topology)
        return tuple(f"{where} on {', '.join(on)}" for where, on in by_range.items())


@dataclass(slots=True)
class _Budget:
    """The remaining room for evidence on a page; the first piece is always shown."""

    left: int
    spent: bool = False

    def spend(self, some: Iterator[Evidence]) -> Iterator[Evidence]:
        """Yield those of `some` that fit, from the first; none is made if none can fit."""
        while not (self.spent and self.left < AROUND):
            one = next(some, None)
            if one is None or (self.spent and one.size > self.left):
                return
            shown = one if self.spent else replace(one, text=shortened(one.text, self.left))
            self.spent = True
            self.left -= shown.size
            yield shown


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page of each clause."""
    results = effects.results
    default = columns(results)
    views = Views()
    runs = {one.run: run_anchor(one.run) for one in results.environments}
    there = expectations_held(results)
    for clause in results.clauses.values():
        fixes = effects.remedies.of_clauses([clause.clause])
        fixed_by = tuple(clause_link(results, one) for one in fixes)
        now = there.get(clause.clause)
        fails = "" if now is None or now.always else now.words
        yield Page(
            clause_path(clause.clause),
            "clause",
            ClausePage(effects, clause, default, fixed_by, views, runs, fails),
            shortened(clause.title, 300) or clause.clause,
            "",
        )
