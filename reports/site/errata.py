"""Where the documentation is wrong: what the newest JAX does instead, as text to paste.

A statement is here if any of its checks failed on the newest JAX that ran. What becomes of who
relies on it decides where it stands; why it failed whom it is for: who writes the documents, who
writes JAX, or who knows the platform.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.effects.harm import Harm, harm
from reports.effects.pairs import Effects
from reports.effects.started import started
from reports.reading.order import topology_order
from reports.reading.outcomes import CellKey, Outcome
from reports.reading.records import Cause, Deviation, Target
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.documents import ClaimRow, Document
from reports.site.marks import Mark, mark_of
from reports.site.names import claim_path, implementation_words, safe_name
from reports.site.page import Page
from reports.site.strips import newest_index
from reports.site.text import shortened, worded

PAGE = "errata.html"
PLATFORM = "platform"
_KINDS = ("documentation", "implementation", PLATFORM)  # who errs
_MOST_OBSERVED = 5  # kinds of behaviour that one text lists
_OBSERVED_LENGTH = 360
_INSTEAD_LENGTH = 150
_PROGRAM_LINES = 40
_NUMBERS = re.compile(r"[\d.,\s…\[\]]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement, how it harms, in which share of its checks it failed, and the text about it.

    `kind` is who errs, `instead` what happens in the check that harms most.
    """

    row: ClaimRow
    document: Document
    anchor: str
    href: str
    harm: Harm
    kind: str
    instead: str
    failed: int
    ran: int
    text: str

    @property
    def never(self) -> bool:
        """Whether it is true in no check at all."""
        return self.failed == self.ran


@dataclass(frozen=True, slots=True)
class Group:
    """The statements that do one harm, by document."""

    harm: Harm
    documents: tuple[tuple[str, tuple[Entry, ...]], ...]

    @property
    def anchor(self) -> str:
        return self.harm.name.lower().replace("_", "-")

    @property
    def title(self) -> str:
        return self.harm.value[:1].upper() + self.harm.value[1:]

    @property
    def size(self) -> int:
        return sum(len(entries) for _, entries in self.documents)


@dataclass(frozen=True, slots=True)
class ErrataPage:
    """Everything that the newest JAX does not fulfil."""

    target: Target
    version: str
    groups: tuple[Group, ...]


def pages(effects: Effects, found: tuple[Document, ...]) -> Iterator[Page]:
    """The page, where there are documents and a target to hold them against."""
    if not found or not effects.results.targets:
        return
    yield Page(
        PAGE,
        "errata",
        errata_page(effects, found),
        "Where the documentation is wrong",
        "Statements of JAX's documents that the newest JAX does not fulfil, as text to paste.",
    )


def errata_page(effects: Effects, found: tuple[Document, ...]) -> ErrataPage:
    """The untrue statements of `found` by what harm they do, the gravest first.

    Within it in the documents' order; of each document what is never true first, and what the
    document errs in before what JAX does. What only this platform does otherwise comes last.
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
    by_harm: dict[Harm, list[Entry]] = {harm: [] for harm in Harm}
    for document in found:
        some = [
            _entry(effects, document, row, target, removed)
            for row in (() if document.silent else document.claims)
            if row.untrue
        ]
        for one in sorted(some, key=lambda one: (not one.never, _KINDS.index(one.kind))):
            by_harm[Harm.PLATFORM if one.kind == PLATFORM else one.harm].append(one)
    groups = tuple(
        Group(
            harm,
            tuple(
                (title, tuple(of_it))
                for title, of_it in groupby(some, key=lambda one: one.document.title)
            ),
        )
        for harm, some in by_harm.items()
        if some
    )
    return ErrataPage(target, version, groups)


def _entry(
    effects: Effects, document: Document, row: ClaimRow, target: Target, removed: frozenset[str]
) -> Entry:
    results = effects.results
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
    harms = [_harm(effects, key) for key, _ in wrong]
    gravest = min(range(len(wrong)), key=lambda place: harms[place].gravity)
    return Entry(
        row=row,
        document=document,
        anchor=safe_name(row.claim.slug),
        href=claim_path(row.claim),
        harm=harms[gravest],
        kind=next((k for k in _KINDS if k in kinds), _KINDS[1]),
        instead=_instead(wrong[gravest][1]),
        failed=len(wrong),
        ran=len(cells),
        text=_text(results, row, target, wrong, len(cells), deviations, removed),
    )


def _harm(effects: Effects, key: CellKey) -> Harm:
    return harm(effects.digest_of(key), fix=effects.results.clauses[key.clause].fixes is not None)


def _instead(outcome: Outcome) -> str:
    return shortened(" ".join(worded(outcome.reason).split()), _INSTEAD_LENGTH)


def _text(
    results: Results,
    row: ClaimRow,
    target: Target,
    wrong: list[tuple[CellKey, Outcome]],
    ran: int,
    deviations: list[Deviation],
    removed: frozenset[str],
) -> str:
    claim = row.claim
    where = f"{claim.document_title} > {claim.heading}" if claim.heading else claim.document_title
    lines = [f"**{where}**", ""]
    if claim.url:
        lines += [claim.url, ""]
    if claim.revisions:
        lines += [f"Reviewed revision: {claim.revisions[-1]}.", ""]
    lines += [f"Stated, in other words: {claim.statement}", ""]
    never = len(wrong) == ran
    often = f"none of {ran} checks; instead" if never else f"{ran - len(wrong)} of {ran} checks"
    others = "" if never else "; in the others" if len(wrong) > 1 else "; in the other"
    lines += [
        f"With {_said_of(target)}, what the statement says was seen in {often}{others} "
        "(topologies are processes x devices of each):",
        "",
        *_observed(wrong, removed),
    ]
    for why in dict.fromkeys(deviation.why for deviation in deviations):
        lines += ["", why]
    links = dict.fromkeys(deviation.link for deviation in deviations if deviation.link)
    if links:
        lines += ["", "See " + ", ".join(links)]
    causes = Counter(d.cause for d in deviations if d.cause in results.causes)
    if causes:
        cause = results.causes[causes.most_common(1)[0][0]]
        under = [name for name, _ in Counter(key.implementation for key, _ in wrong).most_common()]
        lines += ["", *_program(cause, started(cause, under, target.jax))]
    checks = ", ".join(f"`{id}`" for id in dict.fromkeys(key.clause for key, _ in wrong))
    lines += ["", f"Checks: {shortened(checks, 600)}"]
    return "\n".join(lines) + "\n"


def _observed(wrong: list[tuple[CellKey, Outcome]], removed: frozenset[str]) -> list[str]:
    """A line per behaviour, with where it was seen; alike are those that differ in numbers only.

    What is `removed` did not run there: a program asked for it, and something else did.
    """
    seen: dict[str, tuple[str, dict[str, set[str]]]] = {}
    for key, outcome in wrong:
        words = " ".join(worded(outcome.reason).split())
        text = shortened(words, _OBSERVED_LENGTH)
        _, places = seen.setdefault(_NUMBERS.sub("#", text), (text, {}))
        name = implementation_words(key.implementation)
        asked = f"where {name} is asked for, which is gone, on"
        under = asked if key.implementation in removed else f"{name} on"
        places.setdefault(under, set()).add(key.topology)
    lines = [
        f"* {_places(places)}: {text}" for text, places in list(seen.values())[:_MOST_OBSERVED]
    ]
    if len(seen) > _MOST_OBSERVED:
        lines.append(f"* and {len(seen) - _MOST_OBSERVED} more kinds of behaviour")
    return lines


def _places(places: dict[str, set[str]]) -> str:
    return "; ".join(
        f"{under} {', '.join(sorted(topologies, key=topology_order))}"
        for under, topologies in places.items()
    )


def _program(cause: Cause, command: str) -> list[str]:
    """The cause's program, between fences that nothing in it can close."""
    if cause.program.count("\n") > _PROGRAM_LINES:
        return [f"A program that shows it: {cause.file}"]
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", cause.program) or [""]))
    return [
        f"A program that shows it, run as `{command}`:",
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
