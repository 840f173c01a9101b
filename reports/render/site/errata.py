"""Errors of the documentation: what the newest JAX does instead, as text to paste.

A statement is listed if any of its tests failed on the newest JAX that ran, by severity. The
reason of the failure decides who should read it: the documents' authors, JAX's developers, or the
platform's. Statements of one document that fail for one known issue are one entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from conformance.commandline.counting import counted
from conformance.model.records import Target
from conformance.model.verdicts import Verdict
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.effects.severity import Severity, severity_of
from reports.render.site.corrections import (
    COMMAND,
    PATCH,
    Correction,
    Wording,
    commit,
    corrections,
    patch,
    repository,
    wordings,
)
from reports.render.site.documents import ClaimRow, Document
from reports.render.site.issue_drafts import Checked, deviations, main_cause, text
from reports.render.site.marks import CHECKED, Mark, mark_of
from reports.render.site.names import Link, claim_path, implementation_words, safe_name
from reports.render.site.page import Asset, Page
from reports.render.site.strips import newest_index
from reports.render.site.text import shortened, worded
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results

PAGE = "errata.html"
WHOLE = "data/errata.md"  # all texts as one file
PLATFORM = "platform"
_KINDS = ("documentation", "implementation", PLATFORM)  # who errs
_INSTEAD_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Failing:
    """A statement with failed tests, its severity, and its known issue.

    `kind` is who should act, `instead` what happens in the most harmful test.
    """

    row: ClaimRow
    document: Document
    severity: Severity
    kind: str
    cause: str
    instead: str
    cells: Checked
    wrong: Checked

    @property
    def never(self) -> bool:
        """Return whether it is true in no test at all."""
        return len(self.wrong) == len(self.cells)

    @property
    def alike(self) -> tuple[str, ...]:
        """Return the grouping key of entries; statements without a known issue stand alone."""
        return (self.document.title, self.kind, self.severity, self.cause or self.row.claim.slug)


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim of an entry: its slug, its anchor, and the address of its row with all versions."""

    claim: str
    anchor: str
    newest: Mark
    row: Link


@dataclass(frozen=True, slots=True)
class Entry:
    """Statements that fail alike, the share of failed tests, and the text about them."""

    statements: tuple[Statement, ...]
    document: str
    kind: str
    instead: str
    failed: int
    ran: int
    text: str
    only: str = ""  # the implementation under which alone it fails, if others were tested

    @property
    def never(self) -> bool:
        """Return whether the statements are true in no test at all."""
        return self.failed == self.ran


@dataclass(frozen=True, slots=True)
class Group:
    """The statements with one severity, by document."""

    severity: Severity
    documents: tuple[tuple[str, tuple[Entry, ...]], ...]

    @property
    def anchor(self) -> str:
        """The fragment of its address on the page."""
        return self.severity.name.lower().replace("_", "-")

    @property
    def title(self) -> str:
        """The severity's name, for a heading."""
        return self.severity.value[:1].upper() + self.severity.value[1:]

    @property
    def size(self) -> int:
        """The number of statements in it."""
        return sum(len(one.statements) for _, entries in self.documents for one in entries)

    @property
    def words(self) -> str:
        """The number of claims, as text."""
        return counted(self.size, "claim")


@dataclass(frozen=True, slots=True)
class Corrected:
    """A correction, the most severe effect of the failing claims that it corrects, and what was
    measured of that claim.
    """

    severity: Severity
    correction: Correction
    measured: Link


@dataclass(frozen=True, slots=True)
class ErrataPage:
    """Everything that the newest JAX does not fulfil."""

    target: Target
    version: str
    groups: tuple[Group, ...]
    checked: int  # statements of which this JAX ran a check
    corrections: tuple[Corrected, ...]  # the most severe first
    wordings: tuple[Wording, ...]
    uncorrected: tuple[Link, ...]  # statements that fail and have no correction
    documents: tuple[tuple[Link, int, int], ...] = ()  # with its claims that fail, and all tested

    @property
    def size(self) -> int:
        """The number of statements with a failed test."""
        return sum(group.size for group in self.groups)

    @property
    def file(self) -> str:
        """The path of the file with all texts."""
        return WHOLE

    @property
    def patch(self) -> str:
        """The path of the patch with all corrections."""
        return PATCH

    @property
    def commit(self) -> str:
        """The commit of JAX that the corrections are of."""
        return commit()

    @property
    def repository(self) -> str:
        """The address of the repository that the patch changes."""
        return repository()

    @property
    def commands(self) -> str:
        """The commands that apply the patch in a clone."""
        return f"git checkout {commit()}\n{COMMAND}"


def pages(effects: Effects, found: tuple[Document, ...]) -> Iterator[Page | Asset]:
    """Yield the page and its texts as a file, if there are documents and a target."""
    if not found or not effects.results.targets:
        return
    page = errata_page(effects, found)
    yield Page(
        PAGE,
        "errata",
        page,
        "Documentation errors",
        "What JAX's documents say and the newest JAX does not do, and corrections.patch.",
    )
    yield Asset(WHOLE, lambda: whole(page))
    if page.corrections:
        yield Asset(PATCH, lambda: patch(one.correction for one in page.corrections))


def whole(page: ErrataPage) -> str:
    """Return one text: a line per statement, by severity, then the texts of issues."""
    lines = [f"# What the documents say and {page.version} does not, or not always, do", ""]
    texts = []
    for group in page.groups:
        lines += [f"## {group.title}", ""]
        for _, some in group.documents:
            for entry in some:
                text = " / ".join(one.row.text for one in entry.statements)
                often = f"holds in {entry.ran - entry.failed} of {counted(entry.ran, 'test')}"
                lines.append(f"* {text} ({often}) Measured: {entry.instead}")
                texts.append(f"---\n\n{group.title}\n\n{entry.text}")
        lines.append("")
    return "\n".join(["\n".join(lines), *texts])


def errata_page(effects: Effects, found: tuple[Document, ...]) -> ErrataPage:
    """Return the untrue statements by severity, the most severe first.

    Within a severity, in the documents' order. Statements of a document that are never true come
    first, and errors of the document before errors of JAX. Deviations of this platform only come
    last.
    """
    results = effects.results
    target = results.targets[newest_index(results)]
    version = results.labels[target.key]
    # The implementations that this JAX no longer has.
    removed = frozenset(
        key.implementation
        for key, outcome in results.outcomes.items()
        if key.target == target.key and outcome.verdict is Verdict.REMOVED
    )
    by_severity: dict[Severity, list[Entry]] = {severity: [] for severity in Severity}
    for document in found:
        alike: dict[tuple[str, ...], list[Failing]] = {}
        for row in () if document.silent else document.claims:
            if row.untrue:
                one = _failing(effects, document, row, target)
                alike.setdefault(one.alike, []).append(one)
        for some in sorted(alike.values(), key=_order):
            where = Severity.PLATFORM if some[0].kind == PLATFORM else some[0].severity
            by_severity[where].append(_entry(results, some, target, removed))
    groups = tuple(
        Group(
            severity,
            tuple((title, tuple(some)) for title, some in groupby(all, key=lambda e: e.document)),
        )
        for severity, all in by_severity.items()
        if all
    )
    # Each statement that fails, the most severe first.
    failing = {
        statement.claim: (severity, statement.row)
        for severity, entries in by_severity.items()
        for entry in entries
        for statement in entry.statements
    }
    checked = sum(row.newest in CHECKED for one in found if not one.silent for row in one.claims)
    changed = tuple(one for one in corrections() if not failing.keys().isdisjoint(one.claims))
    gone = tuple(one for one in wordings() if not failing.keys().isdisjoint(one.claims))
    worst = ((next(slug for slug in failing if slug in one.claims), one) for one in changed)
    here = (Corrected(failing[slug][0], one, failing[slug][1]) for slug, one in worst)
    texts: tuple[Correction | Wording, ...] = (*changed, *gone)
    corrected = {slug for one in texts for slug in one.claims}
    return ErrataPage(
        target,
        version,
        groups,
        checked,
        tuple(sorted(here, key=lambda one: one.severity.rank)),
        gone,
        tuple(link for slug, (_, link) in failing.items() if slug not in corrected),
        _documents(found),
    )


def _documents(found: Sequence[Document]) -> tuple[tuple[Link, int, int], ...]:
    """Return each document with its number of claims that fail, and of claims that were tested."""
    return tuple(
        (
            Link(one.title, one.path),
            sum(row.untrue for row in one.claims),
            sum(row.newest in CHECKED for row in one.claims),
        )
        for one in found
        if not one.silent
    )


def _order(alike: Sequence[Failing]) -> tuple[bool, int]:
    """Sort key of an entry: what is never true, and errors of the document, first."""
    return not all(one.never for one in alike), _KINDS.index(alike[0].kind)


def _failing(effects: Effects, document: Document, row: ClaimRow, target: Target) -> Failing:
    results = effects.results
    cells = [
        (key, outcome)
        for clause in row.clauses
        if not clause.instead
        for implementation in results.columns(clause.id)
        for topology in results.grid[clause.id]
        for key in [CellKey(clause.id, target.key, implementation, topology)]
        for outcome in [results.outcome(key)]
        if mark_of(outcome.verdict) in CHECKED
    ]
    failed = [(k, o) for k, o in cells if mark_of(o.verdict) is not Mark.RIGHT]
    severities = {key: _severity(effects, key) for key, _ in failed}
    wrong = sorted(failed, key=lambda one: severities[one[0]].rank)
    kinds = {deviation.kind for deviation in deviations(wrong)}
    most_severe, outcome = wrong[0]
    return Failing(
        row=row,
        document=document,
        severity=severities[most_severe],
        kind=next((k for k in _KINDS if k in kinds), _KINDS[1]),
        cause=main_cause(results, wrong),
        instead=_instead(outcome),
        cells=cells,
        wrong=wrong,
    )


def _entry(
    results: Results, some: Sequence[Failing], target: Target, removed: frozenset[str]
) -> Entry:
    cells = {key for one in some for key, _ in one.cells}
    wrong = list({key: (key, outcome) for one in some for key, outcome in one.wrong}.values())
    claims = [one.row.claim for one in some]
    return Entry(
        statements=tuple(
            Statement(
                one.row.claim.slug,
                safe_name(one.row.claim.slug),
                one.row.newest,
                Link(one.row.claim.statement, claim_path(one.row.claim)),
            )
            for one in some
        ),
        document=some[0].document.title,
        kind=some[0].kind,
        instead=some[0].instead,
        failed=len(wrong),
        ran=len(cells),
        text=text(results, claims, target, wrong, len(cells), removed),
        only=_only(wrong, cells),
    )


def _only(wrong: Checked, cells: Collection[CellKey]) -> str:
    """Return the only implementation under which tests fail; empty if that was the only one."""
    failing = {key.implementation for key, _ in wrong}
    if len(failing) != 1 or failing == {key.implementation for key in cells}:
        return ""
    return implementation_words(next(iter(failing)))


def _severity(effects: Effects, key: CellKey) -> Severity:
    fix = effects.results.clauses[key.clause].fixes is not None
    found = severity_of(effects.digest_of(key), fix=fix)
    slug = effects.cause_of(key.clause, effects.results.outcome(key))
    if found is Severity.WRONG_NUMBERS and slug in rewrites().output_only:
        return Severity.REST  # what is printed or numbered otherwise
    return found


def _instead(outcome: Outcome) -> str:
    return shortened(" ".join(worded(outcome.reason).split()), _INSTEAD_LENGTH)
