"""An entry of an upgrade as a page shows it: sentence, program, remedy, where, evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from reports.effects.changed import ONE, Entry, Group, Seen, Upgrade
from reports.effects.edits import describe_edit
from reports.effects.pairs import Side, cell_of
from reports.effects.remedies import Remedy
from reports.effects.started import started
from reports.effects.upgrade_text import counted, notes, where
from reports.reading.records import Cause, Claim
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

MOST_EVIDENCE = 2  # clauses that an entry links to; a cause's page has all of them
MOST_REMEDIES = 2
MOST_OF_PROGRAMS = 18_000  # characters of programs on a page, the gravest first: it stays small
EVERYWHERE, _PLACES = "all", ("one", "several")


@dataclass(frozen=True, slots=True)
class RemedyView:
    """What helps: words, its evidence, and whether it works at the new side."""

    link: Link
    implementation: str
    says: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class HelpView:
    """Remedies that fare alike: what works, what does not; `more` are not shown."""

    title: str
    some: tuple[RemedyView, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A clause that shows it, and its cells by topology."""

    clause: Link
    cells: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class EntryView:
    """Everything about one entry; `places` are classes by which a page filters.

    `edit` is what averts it, in a line; `ran_before`: not all of its programs raised before;
    `parts` are entries of the same defect.
    """

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
    silent: bool  # no document speaks of it: the mark says whether it is as under legacy pmap
    remedies: tuple[HelpView, ...]
    evidence: tuple[Evidence, ...]
    more: int
    edit: str = ""
    ran_before: bool = True
    parts: tuple[EntryView, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """How many causes and programs a group has, `of`: all, or those on topologies of one sort."""

    of: str
    causes: int
    programs: int

    @property
    def says(self) -> str:
        """The counts in words."""
        return f"{counted(self.causes, 'cause')}, {counted(self.programs, 'program')}"


@dataclass(frozen=True, slots=True)
class GroupView:
    """One question about an upgrade and its entries."""

    anchor: str
    effect: str
    title: str
    counts: tuple[Counted, ...]
    entries: tuple[EntryView, ...]

    @property
    def places(self) -> str:
        """The classes by which a page filters: where it has anything at all."""
        return " ".join(f"at-{one.of}" for one in self.counts if one.causes and one.of in _PLACES)


def side_words(side: Side) -> str:
    """A side as a reader says it."""
    return f"{implementation_words(side.implementation)} on jax {side.jax}"


def group_views(results: Results, found: Upgrade) -> tuple[GroupView, ...]:
    """The groups of an upgrade that have entries, in order."""
    left = MOST_OF_PROGRAMS
    groups = []
    for group, entries in found.groups:
        views, folded = [], found.folded(group)
        for entry, parts in folded:
            inner = []
            for one in (*parts, entry):
                view = entry_view(results, found, one, left if group is not Group.REPAIRED else 0)
                left -= len(view.program)
                inner.append(view)
            views.append(replace(inner[-1], parts=tuple(inner[:-1])))
        groups.append(
            GroupView(
                anchor=group_anchor(group),
                effect=min((e.effect for e in entries), key=lambda e: e.gravity).value,
                title=group.value[:1].upper() + group.value[1:],
                counts=tuple(
                    _counted(results, [(one, *parts) for one, parts in folded], of)
                    for of in (EVERYWHERE, *_PLACES)
                ),
                entries=tuple(views),
            )
        )
    return tuple(groups)


def _counted(results: Results, defects: Sequence[Sequence[Entry]], of: str) -> Counted:
    facts = [
        {
            results.clauses[one.clause].fact or one.clause
            for entry in entries
            for one in entry.seen
            if of == EVERYWHERE or (of in filtered(one) and of in filtered(entry))
        }
        for entries in defects
    ]
    return Counted(of, sum(map(bool, facts)), sum(map(len, facts)))


def entry_view(results: Results, found: Upgrade, entry: Entry, room: int) -> EntryView:
    """An entry with everything that it leads to; its program, if it is no longer than `room`."""
    cause = entry.cause
    claim, judged = _stated(results, entry)
    example = cell_of(results, entry.smallest, entry.example.topology, found.new)
    return EntryView(
        anchor=entry_anchor(entry),
        effect=entry.effect.value,
        title=entry.title,
        sentence=entry.sentence,
        notes=tuple(notes(entry)),
        where=where(entry),
        places=" ".join(sorted(filtered(entry))),
        example=entry.example.felt.sentence,
        example_of=Link(entry.smallest, cell_path(results, example)),
        program=cause.program if cause is not None and len(cause.program) <= room else "",
        command=_command(cause, found.old if entry.group is Group.REPAIRED else found.new),
        cause=Link(cause.title, cause_path(cause.cause)) if cause is not None else None,
        claim=_claim(claim),
        mark=together(mark_of(one.verdict) for one in judged),
        silent=claim is not None and claim.silent,
        remedies=tuple(_remedies(entry)),
        evidence=tuple(islice(_evidence(results, found, entry), MOST_EVIDENCE)),
        more=max(0, len(entry.clauses) - MOST_EVIDENCE),
        edit=describe_edit(entry),
        ran_before=entry.ran_before,
    )


def _command(cause: Cause | None, at: Side) -> str:
    """The line that shows a cause on one side."""
    return "" if cause is None else started(cause, [at.implementation], at.jax)


def group_anchor(group: Group) -> str:
    """Where a group stands on its page."""
    return group.name.lower().replace("_", "-")


def entry_anchor(entry: Entry) -> str:
    """Where an entry stands on its page: a cause may have one in several groups."""
    by = entry.cause.cause if entry.cause is not None else entry.smallest
    return safe_name(f"{group_anchor(entry.group)}-{by}")


def filtered(told: Entry | Seen) -> set[str]:
    """With how many processes a page shows something: where it matters."""
    return {"one" if one == ONE else "several" for one in told.matters}


def _stated(results: Results, entry: Entry) -> tuple[Claim | None, tuple[Seen, ...]]:
    """The statement that an entry is about, one of a document where there is any, and its cells."""
    by_claim: dict[str, list[Seen]] = {}
    for one in entry.seen:
        by_claim.setdefault(results.clauses[one.clause].claim, []).append(one)
    known = (results.claims.get(slug) for slug in (entry.claim, *by_claim))
    claim = next((one for one in known if one is not None and not one.silent), None)
    if claim is None:
        return results.claims.get(entry.claim), entry.seen
    return claim, tuple(by_claim.get(claim.slug, entry.seen))


def _claim(claim: Claim | None) -> Link | None:
    if claim is None or claim.silent:
        return None
    return Link(claim.statement, claim_path(claim))


def _remedies(entry: Entry) -> Iterator[HelpView]:
    for help, group in groupby(entry.remedies, key=lambda one: one.help):
        some = [_remedy(one) for one in group]
        title = help.value[:1].upper() + help.value[1:]
        yield HelpView(title, tuple(some[:MOST_REMEDIES]), max(0, len(some) - MOST_REMEDIES))


def _remedy(one: Remedy) -> RemedyView:
    marks = [*(Mark.RIGHT for _ in one.works), *(Mark.WRONG for _ in one.fails)]
    return RemedyView(
        Link(one.title.rstrip("."), clause_path(one.clause)),
        implementation_words(one.implementation),
        one.says,
        Mark.WRONG if one.refused else together(marks),
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
