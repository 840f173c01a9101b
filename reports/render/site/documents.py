"""The source documents, with the observations beside each statement.

Every claim is a row, including those without a clause, because an untested claim must not look
right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from conformance.model.records import Claim
from reports.render.site.marks import CHECKED, Mark, together
from reports.render.site.names import (
    checks_path,
    clause_path,
    document_path,
    implementation_words,
    safe_name,
)
from reports.render.site.page import Page
from reports.render.site.strips import (
    Place,
    Strip,
    joined,
    marks_of_clauses,
    newest_index,
    newest_version,
    versions,
    worst_strips,
)
from reports.render.site.text import shortened
from reports.store.order import implementation_order
from reports.store.results import Results
from reports.store.shown import ONE, SEVERAL

INDEX = "documents.html"
_CHECKS_IN_PLACE = 2
_TITLE_SHOWN = 300
_HOLDS = {Mark.RIGHT: "holds", Mark.PARTLY: "holds in part", Mark.WRONG: "does not hold"}


@dataclass(frozen=True, slots=True)
class ClauseRow:
    """A clause below its claim; `instead` marks a remedy, which does not test the claim."""

    id: str
    title: str
    href: str
    newest: Mark
    strips: tuple[Strip, ...]
    instead: bool


@dataclass(frozen=True, slots=True)
class ApiMark:
    """The mark of a claim in the newest JAX under an implementation, by kind of topology."""

    implementation: str
    processes: str
    mark: Mark

    @property
    def words(self) -> str:
        """The verdict in words."""
        where = f" with {self.processes}" if self.processes else ""
        return f"{_HOLDS[self.mark]} under {implementation_words(self.implementation)}{where}"


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A statement, its mark in the newest JAX, a strip per implementation, its clauses."""

    claim: Claim
    anchor: str
    newest: Mark
    strips: tuple[Strip, ...]
    clauses: tuple[ClauseRow, ...]
    apis: tuple[ApiMark, ...] = ()

    @property
    def apart(self) -> str:
        """The page of its tests, if they do not fit on the document's page."""
        return checks_path(self.claim.slug) if len(self.clauses) > _CHECKS_IN_PLACE else ""

    @property
    def untrue(self) -> bool:
        """Return whether the newest JAX does not, or not always, do what it says."""
        return self.newest in (Mark.WRONG, Mark.PARTLY)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document and its claims; `parts` are its words, outermost first."""

    parts: tuple[str, ...]
    anchor: str
    url: str
    claims: tuple[ClaimRow, ...]

    @property
    def untrue(self) -> int:
        """The number of its statements that the newest JAX does not, or not always, do."""
        return sum(row.untrue for row in self.claims)


@dataclass(frozen=True)
class Document:
    """A document over all its revisions."""

    slug: str
    title: str
    url: str
    revisions: tuple[str, ...]
    versions: tuple[str, ...]
    newest: str
    headings: tuple[Heading, ...]

    @property
    def path(self) -> str:
        """The address of its page."""
        return document_path(self.slug)

    @property
    def silent(self) -> bool:
        """Return whether this collects behaviour that no document mentions."""
        return all(row.claim.silent for row in self.claims)

    @cached_property
    def claims(self) -> tuple[ClaimRow, ...]:
        """The claims of all headings, in the order of the document."""
        return tuple(row for heading in self.headings for row in heading.claims)

    def counted(self, mark: Mark) -> int:
        """Return how many of its claims have this mark on the newest JAX."""
        return sum(row.newest is mark for row in self.claims)

    @property
    def gaps(self) -> int:
        """Return how many of its claims have no clause."""
        return sum(not row.clauses for row in self.claims)


@dataclass(frozen=True, slots=True)
class Checks:
    """The tests of one statement, and its document."""

    document: Document
    row: ClaimRow

    @property
    def place(self) -> str:
        """The address of the statement on its document's page."""
        return f"{self.document.path}#{self.row.anchor}"


@dataclass(frozen=True, slots=True)
class Index:
    """All documents, and the version that their counts refer to."""

    documents: tuple[Document, ...]
    newest: str


def pages(results: Results, found: tuple[Document, ...]) -> Iterator[Page]:
    """Yield the list of documents, and a page per document."""
    if not found:
        return
    yield Page(
        INDEX,
        "documents",
        Index(found, newest_version(results)),
        "Is what the documents say true?",
        "Every statement of JAX's documents on pmap and shard_map, and what was seen of it.",
    )
    for one in found:
        yield Page(
            one.path,
            "document",
            one,
            one.title,
            f"{one.title}: its statements one by one, and which versions of JAX keep them.",
        )
        for row in one.claims:
            if row.apart:
                yield Page(
                    row.apart,
                    "claim",
                    Checks(one, row),
                    shortened(row.claim.statement, _TITLE_SHOWN),
                    f"The checks of a statement of {one.title}, and which versions keep it.",
                )


def documents(results: Results) -> tuple[Document, ...]:
    """Return the documents in the order of the catalogue, undocumented behaviour last."""
    marks = marks_of_clauses(results)
    clauses: dict[str, list[str]] = results.clauses_of_claims()
    named = versions(results)
    newest = newest_index(results)
    grouped: dict[str, list[ClaimRow]] = {}
    for claim in results.claims.values():
        rows = [
            _clause_row(results, id, marks[id], named, newest, claim.silent)
            for id in clauses[claim.slug]
        ]
        whole = _judged(results, marks, clauses[claim.slug])
        grouped.setdefault(claim.outline or claim.document, []).append(
            ClaimRow(
                claim=claim,
                anchor=safe_name(claim.slug),
                newest=_newest(whole, newest),
                strips=worst_strips(whole, named, claim.silent),
                clauses=tuple(rows),
                apis=api_marks(whole, newest),
            )
        )
    found = [_document(results, slug, rows, named) for slug, rows in grouped.items()]
    return tuple(sorted(found, key=lambda one: one.silent))


def newest_marks(results: Results) -> dict[str, tuple[Mark, tuple[ApiMark, ...]]]:
    """Return the mark of each claim in the newest JAX, in total and by implementation."""
    marks = marks_of_clauses(results)
    newest = newest_index(results)
    found = {}
    for claim, ids in results.clauses_of_claims().items():
        whole = _judged(results, marks, ids)
        found[claim] = _newest(whole, newest), api_marks(whole, newest)
    return found


def api_marks(marks: dict[Place, list[Mark]], newest: int) -> tuple[ApiMark, ...]:
    """Return the mark of each implementation; by kind of topology if those differ."""
    by: dict[str, dict[str, list[Mark]]] = {}
    for (implementation, topology), row in marks.items():
        if row[newest] in CHECKED:
            kind = ONE if topology.startswith("1x") else SEVERAL
            by.setdefault(implementation, {}).setdefault(kind, []).append(row[newest])
    found = []
    for implementation in sorted(by, key=implementation_order):
        kinds = {kind: together(some) for kind, some in by[implementation].items()}
        if len(set(kinds.values())) == 1:
            kinds = {"": next(iter(kinds.values()))}
        found += [ApiMark(implementation, kind, kinds[kind]) for kind in sorted(kinds)]
    return tuple(found)


def _document(
    results: Results, slug: str, rows: list[ClaimRow], named: tuple[str, ...]
) -> Document:
    current = [row.claim for row in rows if row.claim.current] or [row.claim for row in rows]
    silent = all(row.claim.silent for row in rows)
    heading_of = {row.claim.slug: _heading_of(results, row, silent) for row in rows}
    first = {heading: n for n, heading in reversed(list(enumerate(heading_of.values())))}
    # Files from before claims knew their place keep the order in which they list them.
    ordered = sorted(rows, key=lambda row: (row.claim.order, first[heading_of[row.claim.slug]]))
    return Document(
        slug=slug,
        title=current[-1].document_title,
        url=next((claim.url.partition("#")[0] for claim in reversed(current)), ""),
        revisions=tuple(dict.fromkeys(r for row in rows for r in row.claim.revisions)),
        versions=named,
        newest=newest_version(results),
        headings=tuple(
            Heading(
                parts=tuple(heading.split(" > ")) if heading else ("No heading",),
                anchor=f"h-{safe_name(heading or '-')}",
                url=some[0].claim.url,
                claims=some,
            )
            for heading, group in groupby(ordered, key=lambda row: heading_of[row.claim.slug])
            for some in [tuple(group)]
        ),
    )


def _heading_of(results: Results, row: ClaimRow, silent: bool) -> str:
    """Return a claim's heading; for undocumented behaviour, the section of its clauses."""
    if not silent:
        return row.claim.heading
    return results.clauses[row.clauses[0].id].section if row.clauses else "Not looked at yet"


def _clause_row(
    results: Results,
    id: str,
    marks: dict[Place, list[Mark]],
    named: Sequence[str],
    newest: int,
    silent: bool,
) -> ClauseRow:
    return ClauseRow(
        id=id,
        title=results.clauses[id].title,
        href=clause_path(id),
        newest=_newest(marks, newest),
        strips=worst_strips(marks, named, silent),
        instead=results.is_instead(id),
    )


def _judged(
    results: Results, marks: dict[str, dict[Place, list[Mark]]], clauses: Iterable[str]
) -> dict[Place, list[Mark]]:
    """Return the marks of a claim, from those of its clauses that test what it says."""
    return joined(marks[id] for id in clauses if not results.is_instead(id))


def _newest(marks: dict[Place, list[Mark]], newest: int) -> Mark:
    return together(row[newest] for row in marks.values()) if marks else Mark.NOT_RUN
