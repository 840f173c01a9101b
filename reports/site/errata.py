"""Where the documentation is wrong: what the newest JAX does instead, as text to paste.

A statement is here if any of its checks failed on the newest JAX that ran. Why it did decides whom
it is for: who writes the documents, who writes JAX, or who knows the platform.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.reading.order import topology_order
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import Cause, Deviation, Target
from reports.reading.results import Results
from reports.site.documents import ClaimRow, Document
from reports.site.marks import Mark, mark_of
from reports.site.names import claim_path, safe_name
from reports.site.page import Page
from reports.site.strips import newest_index
from reports.site.text import shortened, unphased

PAGE = "errata.html"
DOCUMENTATION = "documentation"
_OTHER_KINDS = ("implementation", "platform")
_MOST_OBSERVED = 5  # kinds of behaviour that one text lists
_OBSERVED_LENGTH = 360
_PROGRAM_LINES = 40
_NUMBERS = re.compile(r"[\d.,\s…\[\]]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement, in which share of its checks it failed, and the text about it."""

    row: ClaimRow
    document: Document
    anchor: str
    href: str
    failed: int
    ran: int
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """The entries for one kind of reader, by document."""

    kind: str
    documents: tuple[tuple[str, tuple[Entry, ...]], ...]

    @property
    def size(self) -> int:
        return sum(len(entries) for _, entries in self.documents)


@dataclass(frozen=True, slots=True)
class ErrataPage:
    """Everything that the newest JAX does not fulfil."""

    target: Target
    version: str
    groups: tuple[Group, ...]


def pages(results: Results, found: tuple[Document, ...]) -> Iterator[Page]:
    """The page, where there are documents and a target to hold them against."""
    if not found or not results.targets:
        return
    yield Page(
        PAGE,
        "errata",
        errata_page(results, found),
        "Where the documentation is wrong",
        "Statements of JAX's documents that the newest JAX does not fulfil, as text to paste.",
    )


def errata_page(results: Results, found: tuple[Document, ...]) -> ErrataPage:
    """The untrue statements of `found`: by kind, and within it in the documents' order."""
    target = results.targets[newest_index(results)]
    version = results.labels[target.key]
    entries: dict[str, list[Entry]] = {kind: [] for kind in (DOCUMENTATION, *_OTHER_KINDS)}
    for document in found:
        if document.silent:
            continue
        for row in document.claims:
            if row.untrue:
                kind, entry = _entry(results, document, row, target)
                entries.setdefault(kind, []).append(entry)
    return ErrataPage(
        target, version, tuple(_group(kind, some) for kind, some in entries.items() if some)
    )


def _group(kind: str, entries: list[Entry]) -> Group:
    by_document = groupby(entries, key=lambda entry: entry.document.title)
    return Group(kind, tuple((title, tuple(some)) for title, some in by_document))


def _entry(
    results: Results, document: Document, row: ClaimRow, target: Target
) -> tuple[str, Entry]:
    cells = [
        (key, outcome)
        for clause in row.clauses
        for implementation in results.columns(clause.id)
        for topology in results.grid[clause.id]
        for key in [CellKey(clause.id, target.key, implementation, topology)]
        for outcome in [results.outcome(key)]
        if mark_of(outcome.verdict) in (Mark.RIGHT, Mark.PARTLY, Mark.WRONG)
    ]
    wrong = [(k, o) for k, o in cells if mark_of(o.verdict) is not Mark.RIGHT]
    deviations = [d for _, o in wrong for run in o.runs[-1:] for d in [run.cell.deviation] if d]
    kinds = {deviation.kind for deviation in deviations}
    kind = next((k for k in (DOCUMENTATION, *_OTHER_KINDS) if k in kinds), _OTHER_KINDS[0])
    entry = Entry(
        row=row,
        document=document,
        anchor=safe_name(row.claim.slug),
        href=claim_path(document.slug, row.claim.slug),
        failed=len(wrong),
        ran=len(cells),
        text=_text(results, row, target, wrong, len(cells), deviations),
    )
    return kind, entry


def _text(
    results: Results,
    row: ClaimRow,
    target: Target,
    wrong: list[tuple[CellKey, Outcome]],
    ran: int,
    deviations: list[Deviation],
) -> str:
    claim = row.claim
    where = f"{claim.document_title} > {claim.heading}" if claim.heading else claim.document_title
    lines = [f"**{where}**", ""]
    if claim.url:
        lines += [claim.url, ""]
    if claim.revisions:
        lines += [f"Reviewed revision: {claim.revisions[-1]}.", ""]
    lines += [f"Stated, in other words: {claim.statement}", ""]
    often = "in none" if len(wrong) == ran else f"in {ran - len(wrong)}"
    lines += [
        f"With {_said_of(target)} that was so {often} of {ran} checks. Seen instead "
        "(topologies are processes x devices of each):",
        "",
        *_observed(wrong),
    ]
    for why in dict.fromkeys(deviation.why for deviation in deviations):
        lines += ["", why]
    links = dict.fromkeys(deviation.link for deviation in deviations if deviation.link)
    if links:
        lines += ["", "See " + ", ".join(links)]
    causes = Counter(d.cause for d in deviations if d.cause in results.causes)
    if causes:
        lines += ["", *_program(results.causes[causes.most_common(1)[0][0]])]
    checks = ", ".join(f"`{id}`" for id in dict.fromkeys(key.clause for key, _ in wrong))
    lines += ["", f"Checks: {shortened(checks, 600)}"]
    return "\n".join(lines) + "\n"


def _observed(wrong: list[tuple[CellKey, Outcome]]) -> list[str]:
    """A line per behaviour, with where it was seen; alike are those that differ in numbers only."""
    seen: dict[str, tuple[str, dict[str, set[str]]]] = {}
    for key, outcome in wrong:
        words = " ".join(unphased(outcome.reason).split())
        text = shortened(words, _OBSERVED_LENGTH)
        _, places = seen.setdefault(_NUMBERS.sub("#", text), (text, {}))
        places.setdefault(key.implementation, set()).add(key.topology)
    lines = [
        f"* {_places(places)}: {text}" for text, places in list(seen.values())[:_MOST_OBSERVED]
    ]
    if len(seen) > _MOST_OBSERVED:
        lines.append(f"* and {len(seen) - _MOST_OBSERVED} more kinds of behaviour")
    return lines


def _places(places: dict[str, set[str]]) -> str:
    return "; ".join(
        f"{implementation} on {', '.join(sorted(topologies, key=topology_order))}"
        for implementation, topologies in places.items()
    )


def _program(cause: Cause) -> list[str]:
    """The cause's program, between fences that nothing in it can close."""
    if cause.program.count("\n") > _PROGRAM_LINES:
        return [f"A program that shows it: {cause.file}"]
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", cause.program) or [""]))
    return [
        f"A program that shows it, run as `{cause.command}`:",
        "",
        f"{fence}python",
        *cause.program.rstrip("\n").split("\n"),
        fence,
    ]


def _said_of(target: Target) -> str:
    parts = [f"jax {target.jax}" if target.jax else target.target]
    if target.jaxlib and target.jaxlib != target.jax:
        parts.append(f"jaxlib {target.jaxlib}")
    if target.python:
        parts.append(f"Python {target.python}")
    parts.append(target.platform or "")
    return ", ".join(filter(None, parts))
