"""A page per subject: all that these results tell of donation, of indexing, and so on, on one page.

What is known of a subject lies in many places: statements of several documents, causes, hazards,
figures. Who has one question wants them together. A subject is a section of the catalogue; where
its word is also met in other sections, as donation is in whole training loops, those claims and
causes belong to it too. Here nothing is found out anew: each row leads to where it is told whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from conformance.model.records import Claim
from reports.analysis.effects.changed import Group, Upgrade
from reports.analysis.effects.hazards import Hazard, hazards
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.upgrade import upgrade
from reports.analysis.gradients import taken
from reports.analysis.issues.shown import shown_by
from reports.render.site import gradients, jitted, short
from reports.render.site import hazards as hazard_pages
from reports.render.site.causes import CauseView, causes
from reports.render.site.columns import columns
from reports.render.site.cost_charts import by_story, timed
from reports.render.site.documents import ClaimRow, Document, documents
from reports.render.site.entries import group_anchor, side_words
from reports.render.site.evidence import timing_text
from reports.render.site.fates import Fate, fates
from reports.render.site.memory import Memory, Notes, Table, memory, notes
from reports.render.site.names import (
    Link,
    clause_path,
    implementation_words,
    matrix_path,
    safe_name,
    section_words,
)
from reports.render.site.page import Page
from reports.render.site.pairs import Pair, pairs
from reports.render.site.strips import newest_index, newest_version, versions
from reports.store.order import NEW
from reports.store.results import Results

MOST_CLAIMS = 120  # rows on a page; the documents' pages have all


@dataclass(frozen=True, slots=True)
class Subject:
    """A section, by what readers look for it, and the stem that claims of others share with it."""

    section: str
    words: tuple[str, ...] = ()
    stem: str = ""

    @property
    def title(self) -> str:
        """The subject's words, for a heading."""
        words = section_words(self.section)
        return words[:1].upper() + words[1:]

    @property
    def path(self) -> str:
        """The address of its page."""
        return f"subjects/{safe_name(self.section)}.html"

    def has(self, *texts: str) -> bool:
        """Return whether any of the texts is about it."""
        return bool(self.stem) and any(self.stem in text.lower() for text in texts)


# What readers call a section in other words than its name.
_KNOWN = {
    "multi_controller": Subject(
        "multi_controller",
        (
            *("multi controller", "several processes", "processes", "several hosts", "hosts"),
            *("host", "multi-host", "multihost", "multi-process", "multiprocess", "2x2", "4x2"),
        ),
    ),
    "donation": Subject(
        "donation",
        ("donate", "donated", "donation", "donate_argnums", "donate train state", "buffer reuse"),
        "donat",
    ),
}


def subjects(results: Results) -> tuple[Subject, ...]:
    """Return the sections with a clause that ran."""
    ran = results.ran()
    there = dict.fromkeys(one.section for id, one in results.clauses.items() if id in ran)
    return tuple(_KNOWN.get(name, Subject(name, (name.replace("_", " "),))) for name in there)


def clauses_of(results: Results, subject: Subject) -> frozenset[str]:
    """The clauses of the section, and those elsewhere whose claim is about the subject."""
    about = {slug for slug, claim in results.claims.items() if _names(subject, claim)}
    return frozenset(
        id
        for id, one in results.clauses.items()
        if one.section == subject.section or one.claim in about or subject.has(one.title)
    )


def _names(subject: Subject, claim: Claim) -> bool:
    return subject.has(claim.slug, claim.statement)


class Sources:
    """The data of all pages of subjects, computed when the first page is rendered."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The documents whose claims were tested."""
        return documents(self.effects.results)

    @cached_property
    def causes(self) -> tuple[CauseView, ...]:
        """All known issues."""
        return causes(self.effects)

    @cached_property
    def hazards(self) -> tuple[Hazard, ...]:
        """All silent failures, and failures that end the job."""
        return hazards(self.effects)

    @property
    def notes_in(self) -> Notes:
        """What probes noted, by cell; shared with other pages."""
        return self.effects.once.to(notes)

    @cached_property
    def memory(self) -> Memory:
        """The measured memory of arguments and programs."""
        return memory(self.effects.results, self.notes_in)

    @cached_property
    def upgrades(self) -> tuple[tuple[Pair, Upgrade], ...]:
        """Return those that most readers ask for: from the newest baseline to what the columns
        show.
        """
        some = columns(self.effects.results)
        if not some or not some[0].baseline:
            return ()
        to = [one.side.place for one in some[1:]]
        return tuple(
            (pair, upgrade(self.effects, pair.old, pair.new))
            for pair in pairs(self.effects)
            if pair.old.place == some[0].side.place and pair.new.place in to
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What changes on an upgrade, in a line."""

    effect: str
    title: str
    example: str
    topologies: tuple[str, ...]
    href: str


@dataclass(frozen=True, slots=True)
class Move:
    """An upgrade, and what of the subject changes on it."""

    words: str
    href: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Timed:
    """A timed operation in words, its figures, and the tests that they illustrate."""

    name: str
    lines: tuple[str, ...]
    checks: tuple[Link, ...]


@dataclass(frozen=True)
class SubjectView:
    """The content of a subject's page, computed when it is rendered."""

    subject: Subject
    sources: Sources

    @property
    def results(self) -> Results:
        """The merged results of the site."""
        return self.sources.effects.results

    @cached_property
    def clauses(self) -> frozenset[str]:
        """The ids of the subject's clauses."""
        return clauses_of(self.results, self.subject)

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of JAX, the oldest first."""
        return versions(self.results)

    @property
    def newest(self) -> str:
        """The newest version of JAX."""
        return newest_version(self.results)

    @property
    def matrix_href(self) -> str:
        """The address of the subject's matrix."""
        return matrix_path(self.subject.section)

    @property
    def gradients_href(self) -> str:
        """Return the address of the page of gradients; "" if none was taken."""
        return gradients.PAGE if taken(self.results) else ""

    @cached_property
    def documents(self) -> tuple[tuple[Document, tuple[ClaimRow, ...]], ...]:
        """The statements that the subject's clauses check, by document."""
        left, found = MOST_CLAIMS, []
        for document in self.sources.documents:
            rows = [row for row in document.claims if self._about(row)]
            # What is not true comes first: it is what a reader must know.
            rows.sort(key=lambda row: not row.untrue)
            if rows:
                found.append((document, tuple(rows[: max(0, left)])))
                left -= len(rows)
        return tuple(found)

    @property
    def silences(self) -> bool:
        """Return whether any of its statements is one that no document makes."""
        return any(document.silent for document, _ in self.documents)

    @property
    def left_out(self) -> int:
        """Return how many statements there was no room for."""
        everywhere = [row for one in self.sources.documents for row in one.claims]
        shown = sum(len(rows) for _, rows in self.documents)
        return sum(map(self._about, everywhere)) - shown

    def _about(self, row: ClaimRow) -> bool:
        checked = any(clause.id in self.clauses for clause in row.clauses)
        return checked or _names(self.subject, row.claim)

    @cached_property
    def causes(self) -> tuple[CauseView, ...]:
        """The known issues of the subject."""
        return tuple(one for one in self.sources.causes if self._is_of(one))

    def _is_of(self, view: CauseView) -> bool:
        """Return whether a cause is of the section, is called by its word, or shown by its
        clauses.
        """
        return self._names(view) or any(one.clause in self.clauses for one in view.clauses)

    def _names(self, view: CauseView) -> bool:
        cause, subject = view.cause, self.subject
        return cause.section == subject.section or subject.has(cause.title, *cause.tags)

    @property
    def hazards(self) -> tuple[hazard_pages.HazardView, ...]:
        """Return the known issues that the subject's clauses show, most severe first."""
        return tuple(one for danger in self._hazards.dangers for one in danger.hazards)

    @property
    def hazard_versions(self) -> tuple[str, ...]:
        """The versions that are columns of the table of hazards."""
        return self._hazards.versions

    @cached_property
    def _hazards(self) -> hazard_pages.HazardsPage:
        some = [one for one in self.sources.hazards if self.clauses.intersection(one.clauses)]
        return hazard_pages.hazards_page(self.sources.effects, some)

    @property
    def moves(self) -> tuple[Move, ...]:
        """The upgrades that most readers ask for, and what of the subject changes on each."""
        return tuple(
            Move(
                f"From {side_words(pair.old)} to {side_words(pair.new)}",
                pair.path,
                tuple(self._changes(pair, found)),
            )
            for pair, found in self.sources.upgrades
        )

    def _changes(self, pair: Pair, found: Upgrade) -> Iterator[Change]:
        for group, entries in found.groups:
            for entry in entries if group is not Group.REPAIRED else ():
                seen = [one for one in entry.seen if one.clause in self.clauses]
                if seen:
                    here = {one.where for one in seen}
                    yield Change(
                        entry.effect.value,
                        entry.title,
                        min(seen, key=lambda one: one.shown.effect.rank).shown.sentence,
                        tuple(one for one in entry.topologies if one in here),
                        f"{pair.path}#{group_anchor(group)}",
                    )

    @property
    def memory(self) -> tuple[Table, ...]:
        """The tables of memory that the subject's clauses measured."""
        paths = {clause_path(id) for id in self.clauses}
        return tuple(
            table
            for table in self.sources.memory.tables
            if any(one and one.href in paths for row in table.rows for one in row.figures)
        )

    @property
    def short(self) -> tuple[short.Short, ...]:
        """The page in a few lines, of the newest JAX, and of the new pmap where it has one."""
        rows = [row for one, some in self.documents if not one.silent for row in some]
        found = [*short.edits(one for one in self.causes if self._names(one) and self._holds(one))]
        if self._column is not None:
            arguments = {what for fate in self.fates for what in fate.arguments}
            rest = [table for table in self.memory if table.what not in arguments]
            found += short.memory(rest, self._column, self._row, self.of_newest)
        found += short.hazards(self.hazards, self.hazard_versions)
        found += short.statements(rows, self.newest)
        return tuple(found)

    @cached_property
    def fates(self) -> tuple[Fate, ...]:
        """Return what becomes of donated arguments, where the subject's clauses looked at it."""
        if self._column is None:
            return ()
        return fates(
            self.results,
            self.clauses,
            self.results.targets[self._row].key,
            NEW,
            self.sources.notes_in,
            short.peaks(self.memory, self._column, self._row),
        )

    @property
    def of_newest(self) -> str:
        """The summary of the page."""
        return f"{implementation_words(NEW)} on JAX {self.newest}"

    @property
    def _row(self) -> int:
        return newest_index(self.results)

    @property
    def _column(self) -> int | None:
        """The new pmap's column of figures, where there is one."""
        names = [name for name, _ in self.implementations]
        return names.index(NEW) if NEW in names else None

    def _holds(self, view: CauseView) -> bool:
        """Return whether the newest JAX still has it."""
        newest = self.results.targets[self._row].key
        return any(key.target == newest for key in shown_by(self.results).get(view.cause.cause, ()))

    @property
    def implementations(self) -> tuple[tuple[str, str], ...]:
        """The implementations of the memory's table: name and words."""
        return self.sources.memory.implementations

    @property
    def times(self) -> tuple[Timed, ...]:
        """Return what the time lane measured beside the subject's clauses in the newest JAX, each
        once; what the page of plain jit shows is left to it.
        """
        newest = self.results.targets[newest_index(self.results)].key
        found: dict[str, dict[str, None]] = {}
        checks: dict[str, dict[str, None]] = {}
        for key, lines in self.results.timings.items():
            if key.clause in self.clauses and key.target == newest:
                for one in lines:
                    if one.timing.startswith(jitted.TIMED):
                        continue
                    place = implementation_words(key.implementation)
                    line = f"{place} on {key.topology}, {timing_text(one)}"
                    found.setdefault(one.timing, {})[line] = None
                    checks.setdefault(one.timing, {})[key.clause] = None
        titles = {id: one.title for id, one in self.results.clauses.items()}
        return tuple(
            Timed(
                timed(name),
                tuple(found[name]),
                tuple(Link(titles[id], clause_path(id)) for id in checks[name]),
            )
            for name in sorted(found, key=by_story)
        )

    @property
    def timed_beside_jit(self) -> str:
        """The page that shows the times of patterns beside plain jit, if this subject has any."""
        of_patterns = (
            one.timing.startswith(jitted.TIMED)
            for key, some in self.results.timings.items()
            if key.clause in self.clauses
            for one in some
        )
        return jitted.PAGE if any(of_patterns) else ""


def pages(effects: Effects) -> Iterator[Page]:
    """The page of each subject."""
    sources = Sources(effects)
    for subject in subjects(effects.results):
        yield Page(
            subject.path,
            "subject",
            SubjectView(subject, sources),
            subject.title,
            f"{subject.title}: documented claims, what holds, what changes, and what it costs.",
        )
