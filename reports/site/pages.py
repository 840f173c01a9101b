"""What the pages of the site show, as plain records that the templates only lay out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from reports.reading.order import short_implementation
from reports.reading.outcomes import CellKey, Outcome, Run
from reports.reading.records import (
    Cause,
    Cell,
    Claim,
    Clause,
    Finding,
    Strength,
    Target,
    Timing,
)
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.names import Link, cell_anchor, clause_link, clause_path, safe_name
from reports.site.observed import ObservedView, observed
from reports.summary import claims_said, printable, total, total_of_facts

_REASON_SHOWN = 300  # characters of a reason in a tooltip


@dataclass(frozen=True, slots=True)
class Badge:
    """A cell in a table: its verdict, where its details are, and why in short."""

    verdict: Verdict
    href: str
    hint: str


@dataclass(frozen=True, slots=True)
class Row:
    """A clause in the matrix; `cells` has a column per target and implementation."""

    clause: Clause
    href: str
    statement: str
    topologies: tuple[str, ...]
    cells: tuple[tuple[Badge, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one part of the documents."""

    name: str
    anchor: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Claims of one heading that no clause checks."""

    document: str
    heading: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class TargetView:
    """A target as a column head and as a row of the versions table."""

    target: Target
    label: str


@dataclass(frozen=True, slots=True)
class IndexPage:
    """The whole matrix."""

    targets: tuple[TargetView, ...]
    implementations: tuple[tuple[str, str], ...]
    topologies: tuple[str, ...]
    counts: tuple[tuple[Verdict, int], ...]
    sections: tuple[Section, ...]
    gaps: tuple[GapGroup, ...]
    claims: str
    facts: tuple[tuple[Verdict, int], ...]
    without_result: int
    started: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding, once for all the processes in which it is the same."""

    step: str
    processes: str
    expected: str
    saw: str


@dataclass(frozen=True, slots=True)
class RunView:
    """One record of a cell; `source` says which file and run it is from."""

    cell: Cell
    source: str
    failed: tuple[FindingView, ...]
    held: tuple[FindingView, ...]
    observed: tuple[ObservedView, ...]


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell on its clause's page."""

    anchor: str
    label: str
    implementation: str
    topology: str
    outcome: Outcome
    runs: tuple[RunView, ...]
    timings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """One implementation and topology of a clause, over all targets."""

    implementation: str
    topology: str
    badges: tuple[Badge, ...]


@dataclass(frozen=True, slots=True)
class ClausePage:
    """Everything about one clause."""

    clause: Clause
    claim: Claim | None
    cause: Cause | None
    causes: Mapping[str, Cause]
    strength: Strength | None
    fixes: Link | None
    fixed_by: tuple[Link, ...]
    expected: tuple[tuple[str, str], ...]
    targets: tuple[str, ...]
    overview: tuple[OverviewRow, ...]
    cells: tuple[tuple[str, tuple[CellView, ...]], ...]


def index_page(results: Results) -> IndexPage:
    """The matrix of all clauses."""
    counted, facts, ran = total(results), total_of_facts(results), results.ran()
    by_section: dict[str, list[Row]] = {}
    # A partial run's pages are about what it ran; where nothing was, everything is missing.
    shown = [c for c in results.clauses.values() if c.clause in ran or not ran]
    for clause in shown:
        by_section.setdefault(clause.section, []).append(_row(results, clause))
    gaps = results.gaps()
    return IndexPage(
        targets=tuple(TargetView(t, results.labels[t.key]) for t in results.targets),
        implementations=tuple((i, short_implementation(i)) for i in results.implementations),
        topologies=results.topologies,
        counts=tuple((v, counted[v]) for v in Verdict),
        sections=tuple(
            Section(name, f"s-{safe_name(name)}", tuple(rows)) for name, rows in by_section.items()
        ),
        gaps=tuple(
            GapGroup(document, heading, tuple(claims))
            for (document, heading), claims in groupby(
                _by_heading(gaps), key=attrgetter("document_title", "heading")
            )
        ),
        claims=claims_said(results),
        facts=tuple((v, facts[v]) for v in Verdict),
        without_result=len(results.clauses) - len(shown),
        started=_ends(sorted(t.started for t in results.targets)),
        notes=results.notes,
    )


def clause_page(results: Results, clause: Clause) -> ClausePage:
    """Everything about `clause`."""
    topologies = results.grid[clause.clause]
    columns = results.columns(clause.clause)
    places = [(i, t) for i in columns for t in topologies]
    views = {
        (key.target, key.implementation, key.topology): _cell(results, key)
        for target in results.targets
        for i, t in places
        for key in [CellKey(clause.clause, target.key, i, t)]
    }
    return ClausePage(
        clause=clause,
        claim=results.claims.get(clause.claim),
        cause=results.causes.get(clause.cause),
        causes=results.causes,
        strength=results.strength.get(clause.clause),
        fixes=clause_link(results, clause.fixes) if clause.fixes else None,
        fixed_by=tuple(
            clause_link(results, c.clause)
            for c in results.clauses.values()
            if c.fixes == clause.clause
        ),
        expected=tuple((i, clause.expected.get(i, "nothing is said")) for i in columns),
        targets=tuple(results.labels[t.key] for t in results.targets),
        overview=tuple(
            OverviewRow(
                i,
                t,
                tuple(
                    _badge(view.outcome, f"#{view.anchor}")
                    for target in results.targets
                    for view in [views[target.key, i, t]]
                ),
            )
            for i, t in places
        ),
        cells=tuple(
            (results.labels[target.key], tuple(views[target.key, i, t] for i, t in places))
            for target in results.targets
        ),
    )


def _row(results: Results, clause: Clause) -> Row:
    page = clause_path(clause.clause)
    topologies = results.grid[clause.clause]
    claim = results.claims.get(clause.claim)
    columns = [(t.key, i) for t in results.targets for i in results.implementations]
    asked = results.columns(clause.clause)
    return Row(
        clause=clause,
        href=page,
        statement=claim.statement if claim else f"{clause.claim}: not in the catalogue",
        topologies=topologies,
        cells=tuple(
            tuple(
                _badge(results.outcome(key), f"{page}#{cell_anchor(results, key)}")
                for topology in topologies
                if implementation in asked
                for key in [CellKey(clause.clause, target, implementation, topology)]
            )
            for target, implementation in columns
        ),
    )


def _badge(outcome: Outcome, href: str) -> Badge:
    reason = printable(outcome.reason)
    if len(reason) > _REASON_SHOWN:
        reason = reason[:_REASON_SHOWN] + "…"
    hint = f"{outcome.verdict.value}: {reason}" if reason else outcome.verdict.value
    return Badge(outcome.verdict, href, hint)


def _cell(results: Results, key: CellKey) -> CellView:
    outcome = results.outcome(key)
    return CellView(
        anchor=cell_anchor(results, key),
        label=results.labels[key.target],
        implementation=key.implementation,
        topology=key.topology,
        outcome=outcome,
        runs=tuple(_run(run) for run in outcome.runs),
        timings=tuple(_timing(one) for one in results.timings.get(key, ())),
    )


def _timing(timing: Timing) -> str:
    what = f"{timing.timing}, {timing.contender}"
    if timing.seconds is None:
        return f"{what}: not measured: {timing.failed}"
    took = timing.seconds
    ratios = "".join(f"; {one.says}" for one in timing.ratios)
    return (
        f"{what}: {_duration(took.median)} ({_duration(took.low)} to {_duration(took.high)}, "
        f"{timing.rounds} rounds){ratios}"
    )


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _run(run: Run) -> RunView:
    findings = run.cell.findings
    return RunView(
        cell=run.cell,
        source=f"{run.file}, run {run.run}",
        failed=_findings(f for f in findings if not f.holds),
        held=_findings(f for f in findings if f.holds),
        observed=observed(run.cell.observations),
    )


def _findings(findings: Iterable[Finding]) -> tuple[FindingView, ...]:
    same: dict[tuple[str, str, str], list[str]] = {}
    for f in findings:
        processes = same.setdefault((f.step or "all", f.expected, f.saw), [])
        processes.append("all" if f.process is None else str(f.process))
    return tuple(
        FindingView(step, ", ".join(dict.fromkeys(processes)), expected, saw)
        for (step, expected, saw), processes in same.items()
    )


def _by_heading(claims: list[Claim]) -> list[Claim]:
    """Claims of one heading side by side, in the order in which the headings first appear."""
    order: dict[tuple[str, str], int] = {}
    documents: dict[str, int] = {}
    for claim in claims:
        documents.setdefault(claim.document_title, len(documents))
        order.setdefault((claim.document_title, claim.heading), len(order))
    return sorted(
        claims,
        key=lambda c: (documents[c.document_title], order[c.document_title, c.heading]),
    )


def _ends(ordered: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ordered[:1] + ordered[-1:]))
