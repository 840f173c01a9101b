"""What users report to public trackers, what shows it, and in which versions it is still so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from conformance.model.records import JAX
from conformance.model.tables import load_toml
from conformance.model.verdicts import Verdict
from reports.analysis.effects.digest import RAISED
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects
from reports.analysis.issues.places import Where
from reports.analysis.issues.shown import shown_by
from reports.render.site.issues import GridCell
from reports.render.site.marks import Mark, mark_of
from reports.render.site.names import Link, cause_link, clause_path, implementation_words
from reports.render.site.page import Page
from reports.render.site.strips import jax_versions
from reports.store.order import implementation_order
from reports.store.outcomes import RAN, CellKey
from reports.store.results import Results

PAGE = "user-reports.html"
FILE = "user_reports.toml"
WORKS = "works"
EFFECTS = {one.words: one for one in Effect}

_NOT_LOOKED = (Verdict.NOT_RUN, Verdict.LEFT_OUT)
_ADDRESS = re.compile(r"https://github\.com/([^/]+)/([^/]+)/(?:issues|pull)/(\d+)")


@dataclass(frozen=True, slots=True)
class Report:
    """A report in our words; `seen` says in which cells of its clauses it is still so.

    It is so where these raise, warn, fail or hold; "works" is for what somebody asked how to do.

    `words` are what somebody would search for. A report that nothing shows says what is missing,
    `open`, or why it is `out_of_scope`.
    """

    address: str
    title: str
    year: int
    kind: str = ""
    words: str = ""
    causes: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    seen: str = ""
    open: str = ""
    out_of_scope: str = ""

    @property
    def name(self) -> str:
        """The repository and the number, as trackers write them."""
        owner, repository, number = _parts(self.address)
        return f"{owner}/{repository}#{number}"

    @property
    def anchor(self) -> str:
        """The anchor of the report's row."""
        return "-".join(_parts(self.address)).lower()


def _parts(address: str) -> tuple[str, ...]:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError(
            f"{address} is not the address of a GitHub issue or pull request: correct it in {FILE}"
        )
    return found.groups()


@lru_cache(maxsize=1)
def reports() -> tuple[Report, ...]:
    """Return the table beside this module, in its order."""
    lists = ("causes", "clauses")
    return tuple(
        Report(**{**raw, **{name: tuple(raw.get(name, ())) for name in lists}})
        for raw in load_toml(Path(__file__).with_name(FILE))["report"]
    )


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report, the pages of what shows it, and a cell per version."""

    report: Report
    shown_by: tuple[Link, ...]
    cells: tuple[GridCell, ...]

    @property
    def newest(self) -> str:
        """Whether the report still applies to the newest version."""
        return self.cells[-1].says


@dataclass(frozen=True, slots=True)
class ReportsPage:
    """The reports that are answered, those for which a test is missing, and the others."""

    rows: tuple[ReportRow, ...]
    open: tuple[Report, ...]
    out_of_scope: tuple[Report, ...]
    versions: tuple[str, ...]


def pages(effects: Effects) -> Iterator[Page]:
    """The page of all reports, where there are results to hold them against."""
    versions = tuple(jax_versions(effects.results))
    if not versions:
        return
    every = reports()
    answered = [one for one in every if one.causes or one.clauses]
    yield Page(
        PAGE,
        "user-reports",
        ReportsPage(
            tuple(_row(effects, one, versions) for one in answered),
            tuple(one for one in every if one.open),
            tuple(one for one in every if one.out_of_scope),
            versions,
        ),
        "User reports",
        "What users reported to public trackers, what shows it, and where it is still so.",
    )


def reports_of(*, cause: str = "", clause: str = "") -> tuple[Link, ...]:
    """The rows of the reports that name a known issue or a test."""
    return tuple(
        Link(f"{one.title} ({one.name}, {one.year})", f"{PAGE}#{one.anchor}")
        for one in reports()
        if cause in one.causes or clause in one.clauses
    )


def _row(effects: Effects, report: Report, versions: tuple[str, ...]) -> ReportRow:
    results = effects.results
    still, looked = _places(effects, report)
    links = (
        *(cause_link(results, slug) for slug in report.causes if slug in results.causes),
        *(
            Link(results.clauses[id].title, clause_path(id))
            for id in report.clauses
            if id in results.clauses
        ),
    )
    return ReportRow(report, links, tuple(_cell(report, jax, still, looked) for jax in versions))


def _places(effects: Effects, report: Report) -> tuple[set[Where], set[str]]:
    """Return where the reporter's observation is made, and the versions in which it was looked for.

    Looked for: every cell was run in which it is made in another version, as far as it applies.
    Where it is made nowhere, any cell that would show it.
    """
    results = effects.results
    of_clauses = _cells(results)
    here = [key for id in report.clauses if report.seen for key in of_clauses.get(id, ())]
    still = {key for slug in report.causes for key in shown_by(results).get(slug, ())}
    still |= {key for key in here if is_seen(effects, key, report.seen)}
    looked = {
        target.jax
        for target in results.targets
        if all(
            results.outcome(key._replace(target=target.key)).verdict not in _NOT_LOOKED
            for key in still
        )
    }
    if not still:
        looked = {key.target.jax for key in here}
    return {_where(key) for key in still}, {jax for jax in looked if jax}


def _where(key: CellKey) -> Where:
    return Where(key.implementation, key.target.jax or "")


@lru_cache(maxsize=1)  # every report asks the same of one site
def _cells(results: Results) -> dict[str, list[CellKey]]:
    """The cells of each clause that were run."""
    found: dict[str, list[CellKey]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            found.setdefault(key.clause, []).append(key)
    return found


def is_seen(effects: Effects, key: CellKey, seen: str) -> bool:
    """Return whether a cell raises, warns, fails its expectation, or holds what is expected of
    it.
    """
    digest = effects.digest_of(key)
    steps = [step for _, step in digest.steps()] if digest is not None else []
    if seen == "raises":
        died = digest is not None and digest.died is not None
        return died or any(step.outcome == RAISED for step in steps)
    if seen == "warns":
        return any(step.warnings for step in steps)
    mark = mark_of(effects.results.outcome(key).verdict)
    return mark is Mark.RIGHT if seen in ("holds", WORKS) else mark in (Mark.WRONG, Mark.PARTLY)


def _cell(report: Report, jax: str, still: set[Where], looked: set[str]) -> GridCell:
    names = {where.implementation for where in still if where.jax == jax}
    if names:
        words = (
            "every implementation" if name == JAX else implementation_words(name)
            for name in sorted(names, key=implementation_order)
        )
        if report.seen == WORKS:
            return GridCell(jax, f"works: {', '.join(words)}", "g-no")
        return GridCell(jax, f"still so: {', '.join(words)}", EFFECTS[report.kind].css)
    if jax in looked:
        return GridCell(jax, "not so", "g-no")
    return GridCell(jax, "not run", "g-none")
