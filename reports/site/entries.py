"""An entry of an upgrade as a page shows it: sentence, program, remedy, where, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from reports.effects.pairs import Side, cell_of
from reports.effects.told import notes, where
from reports.effects.upgrade import Entry, Group, Upgrade
from reports.reading.records import Claim
from reports.reading.results import Results
from reports.site.marks import Mark, mark_of, together
from reports.site.names import (
    Link,
    cause_path,
    cell_path,
    claim_path,
    clause_path,
    implementation_words,
    safe_name,
)

MOST_EVIDENCE = 3  # clauses that an entry links to; a cause's page has all of them
MOST_REMEDIES = 3
MOST_OF_PROGRAMS = 50_000  # characters of programs on a page, the gravest first: it stays small
_ONE_PROCESS = "1x"  # how the topologies of one process begin


@dataclass(frozen=True, slots=True)
class RemedyView:
    """What helps: words, its evidence, and whether it works at the new side."""

    link: Link
    implementation: str
    says: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Evidence:
    """A clause that shows it, and its cells by topology."""

    clause: Link
    cells: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class EntryView:
    """Everything about one entry; `places` are classes by which a page filters."""

    anchor: str
    effect: str
    title: str
    sentence: str
    notes: tuple[str, ...]
    where: str
    places: str
    example: str
    example_of: Link
    program: str
    command: str
    cause: Link | None
    claim: Link | None
    mark: Mark
    remedies: tuple[RemedyView, ...]
    evidence: tuple[Evidence, ...]
    more: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """One question about an upgrade and its entries."""

    anchor: str
    effect: str
    title: str
    programs: int
    entries: tuple[EntryView, ...]


def side_words(side: Side) -> str:
    """A side as a reader says it."""
    return f"{implementation_words(side.implementation)} on jax {side.jax}"


def group_views(results: Results, found: Upgrade) -> tuple[GroupView, ...]:
    """The groups of an upgrade that have entries, in order."""
    left = MOST_OF_PROGRAMS
    groups = []
    for group, entries in found.groups:
        views = []
        for entry in entries:
            view = entry_view(results, found, entry, left if group is not Group.REPAIRED else 0)
            left -= len(view.program)
            views.append(view)
        groups.append(
            GroupView(
                anchor=group.name.lower().replace("_", "-"),
                effect=min((e.effect for e in entries), key=lambda e: e.gravity).value,
                title=group.value[:1].upper() + group.value[1:],
                programs=sum(entry.programs for entry in entries),
                entries=tuple(views),
            )
        )
    return tuple(groups)


def entry_view(results: Results, found: Upgrade, entry: Entry, room: int) -> EntryView:
    """An entry with everything that it leads to; its program, if it is no longer than `room`."""
    cause = entry.cause
    example = cell_of(results, entry.smallest, entry.example.topology, found.new)
    return EntryView(
        anchor=entry_anchor(entry),
        effect=entry.effect.value,
        title=entry.title,
        sentence=entry.sentence,
        notes=tuple(notes(entry)),
        where=where(entry),
        places=" ".join(sorted({place(topology) for topology in entry.topologies})),
        example=entry.example.felt.sentence,
        example_of=Link(entry.smallest, cell_path(results, example)),
        program=cause.program if cause is not None and len(cause.program) <= room else "",
        command=cause.command if cause is not None else "",
        cause=Link(cause.title, cause_path(cause.cause)) if cause is not None else None,
        claim=_claim(results.claims.get(entry.claim)),
        mark=together(mark_of(one.verdict) for one in entry.seen),
        remedies=tuple(islice(_remedies(entry), MOST_REMEDIES)),
        evidence=tuple(islice(_evidence(results, found, entry), MOST_EVIDENCE)),
        more=max(0, len(entry.clauses) - MOST_EVIDENCE),
    )


def entry_anchor(entry: Entry) -> str:
    """Where an entry stands on its page: a cause may have one in several groups."""
    by = entry.cause.cause if entry.cause is not None else entry.smallest
    return safe_name(f"{entry.group.name.lower().replace('_', '-')}-{by}")


def place(topology: str) -> str:
    """Whether a topology is of one process or of several, as a page filters."""
    return "one" if topology.startswith(_ONE_PROCESS) else "several"


def _claim(claim: Claim | None) -> Link | None:
    if claim is None:
        return None
    return Link(claim.statement, claim_path(claim.document, claim.slug))


def _remedies(entry: Entry) -> Iterator[RemedyView]:
    for one in entry.remedies:
        marks = [*(Mark.RIGHT for _ in one.works), *(Mark.WRONG for _ in one.fails)]
        yield RemedyView(
            Link(one.title.rstrip("."), clause_path(one.clause)),
            implementation_words(one.implementation),
            one.says,
            together(marks),
        )


def _evidence(results: Results, found: Upgrade, entry: Entry) -> Iterator[Evidence]:
    for clause in entry.clauses:
        yield Evidence(
            Link(clause, clause_path(clause)),
            tuple(
                Link(
                    one.topology,
                    cell_path(results, cell_of(results, clause, one.topology, found.new)),
                )
                for one in entry.seen
                if one.clause == clause
            ),
        )
