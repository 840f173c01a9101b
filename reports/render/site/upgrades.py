"""The pages about effects: an upgrade for each sensible pair, the first page, versions, hazards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TypeVar

from reports.analysis.effects.changed import GROUP_OF, Entry, Group, Upgrade, in_processes
from reports.analysis.effects.edits import by_title
from reports.analysis.effects.effect import SEVERE, Effect
from reports.analysis.effects.hazards import hazards
from reports.analysis.effects.pairs import Effects, Side
from reports.analysis.effects.plan import MOST_WORDS, Change, Plan, plan
from reports.analysis.effects.rewrites import Place, first_said, rewrites
from reports.analysis.effects.upgrade import upgrade
from reports.analysis.issues.derive import found_at, issue_of
from reports.analysis.issues.libraries import Libraries, libraries_between, without_libraries
from reports.analysis.issues.places import Where
from reports.analysis.libraries import Outgrown, load_libraries, outgrown
from reports.render.site import feed, home, platforms, versions
from reports.render.site import hazards as hazard_pages
from reports.render.site.entries import (
    EntryView,
    GroupView,
    counted_places,
    entry_href,
    entry_view,
    filtered,
    group_anchor,
    group_views,
    places_class,
    side_words,
)
from reports.render.site.names import Link, cause_path, clause_path
from reports.render.site.page import Asset, Page
from reports.render.site.pairs import Pair, pairs
from reports.render.site.removed import Removed, removed_between
from reports.render.text.upgrade import MORE_TESTS, SILENT, missing, silently
from reports.store.order import SHARD_MAP
from reports.store.shown import ONE, SEVERAL

Compared = TypeVar("Compared")

# Which edits are folded.
_FEWER = "more edits, less severe or for fewer programs"
_OF_ERRORS = "edits for code that raised an error before too"

RAISES = "its tests raise the expected error now"
MOST_SILENT = 6  # lines of what differs silently that are shown at once
WORDS_SHOWN = 403  # of edits and differences at once: with the rest it is read in three minutes
_MOST_ISSUES = 2  # known issues that an edit names


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One edit; `places` are classes for filtering. `folded` is what the note says further."""

    title: str
    place: Place
    before: str
    after: str
    note: str
    folded: str
    library: str
    effects: tuple[tuple[str, str], ...]
    where: str
    tried: str
    instead: bool
    issues: tuple[Link, ...]
    more: int
    shown: tuple[Link, ...]
    places: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Edits that are folded together; `words` follow their number."""

    words: str
    edits: tuple[ChangeView, ...]

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many they are: of all, and by processes."""
        return counted_places(self.edits)


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """What a version of a library changes: a sentence, what else is `folded`, and its page."""

    effect: str
    library: str
    since: str
    says: str
    folded: str
    href: str

    @property
    def silent(self) -> bool:
        """Whether a program that meets it ends without an error."""
        return bool(self.effect) and GROUP_OF[Effect(self.effect)] in SILENT


@dataclass
class UpgradeView:
    """An upgrade, computed when its page is rendered."""

    effects: Effects
    pair: Pair

    @cached_property
    def found(self) -> Upgrade:
        """What changes, without what follows the versions of libraries."""
        return without_libraries(upgrade(self.effects, self.pair.old, self.pair.new))

    @cached_property
    def groups(self) -> tuple[GroupView, ...]:
        """Return what changes, by effect, without improvements."""
        more = {
            (group_anchor(one.group), entry_href(self.effects.results, self.found, one))
            for one in self.found.entries
            if one.met_before
        }

        def noted(anchor: str, line: EntryView) -> EntryView:
            known = (anchor, line.href) in more
            return replace(line, title=f"{line.title} ({MORE_TESTS})") if known else line

        return tuple(
            replace(group, lines=tuple(noted(group.anchor, line) for line in group.lines))
            for group in self._groups
            if group.anchor != group_anchor(Group.REPAIRED)
        )

    @cached_property
    def fixed(self) -> GroupView | None:
        """Return what improved; None if nothing did."""
        wanted = group_anchor(Group.REPAIRED)
        group = next((one for one in self._groups if one.anchor == wanted), None)
        if group is None:
            return None
        instead, still = self._replaced(self.pair.new), self._shown(self.pair.new)
        notes = {cause_path(slug): self._instead(by) for slug, by in instead.items()}
        notes |= {cause_path(slug): "in some tests only" for slug in still}
        notes |= {
            entry_href(self.effects.results, self.found, one): RAISES
            for one in self.found.entries
            if one.group is Group.REPAIRED and one.raises_otherwise
        }
        lines = (
            replace(one, title=f"{one.title} ({notes[one.href]})") if one.href in notes else one
            for one in group.lines
        )
        return replace(group, lines=tuple(lines))

    @property
    def all_groups(self) -> tuple[GroupView, ...]:
        """Return what changes, by effect, improvements last."""
        return self.groups if self.fixed is None else (*self.groups, self.fixed)

    @cached_property
    def _groups(self) -> tuple[GroupView, ...]:
        return group_views(self.effects.results, self.found)

    @cached_property
    def plan(self) -> Plan:
        """The edits of the upgrade, in the order in which to make them."""
        return plan(self.effects.results, self.found, MOST_WORDS)

    @cached_property
    def likely(self) -> tuple[tuple[Place, tuple[ChangeView, ...]], ...]:
        """The edits that are shown unfolded, by their place in a program."""
        return tuple(
            (place, tuple(_change(self, one) for one in some)) for place, some in self.plan.places
        )

    @cached_property
    def severe(self) -> tuple[ChangeView, ...]:
        """The edits for few programs that are shown in a line: against the most severe effects."""
        return tuple(_change(self, one) for one in self.plan.severe)

    @cached_property
    def also(self) -> tuple[ChangeView, ...]:
        """The next likely edits, in a line each."""
        return tuple(_change(self, one) for one in self._named)

    @cached_property
    def _named(self) -> tuple[Change, ...]:
        """The next likely edits, as many as there is room for beside what the page shows anyway."""
        libraries = (
            *(one.says for one in self._library_changes),
            *(one.sentence for one in self.of_libraries.outdated),
            *(one.warning for one in self.libraries),
        )
        silent = (one.title for one in self.silent[:MOST_SILENT])
        beside = sum(len(text.split()) for text in (*libraries, *silent))
        edits = sum(one.words for one in self.plan.likely)
        edits += sum(one.words_named for one in self.plan.severe)
        return self.plan.named(WORDS_SHOWN - beside - edits)

    @cached_property
    def rare(self) -> tuple[ChangeView, ...]:
        """The edits that are folded, of programs that ran before."""
        return tuple(_change(self, one) for one in self._rare if not one.raised_before)

    @cached_property
    def rare_of_errors(self) -> tuple[ChangeView, ...]:
        """The edits that are folded, of programs that raised an error before too."""
        return tuple(_change(self, one) for one in self._rare if one.raised_before)

    @property
    def _rare(self) -> Iterator[Change]:
        shown = set(map(id, (*self._named, *self.plan.severe)))
        return (one for one in self.plan.rare if id(one) not in shown)

    @property
    def library_changes(self) -> tuple[LibraryChange, ...]:
        """What new versions of libraries change, except silently."""
        return tuple(one for one in self._library_changes if not one.silent)

    @property
    def silent_library_changes(self) -> tuple[LibraryChange, ...]:
        """What new versions of libraries change silently."""
        return tuple(one for one in self._library_changes if one.silent)

    @cached_property
    def _library_changes(self) -> tuple[LibraryChange, ...]:
        """What new versions of libraries change, each with its effect and its known issue."""
        known, found = issue_of(self.effects), []
        for one in self.of_libraries.changes:
            issue = known.get(one.causes[0])
            worst = None if issue is None else issue.worst_under(self.pair.new.implementation)
            path = "" if issue is None else cause_path(issue.cause.cause)
            effect = "" if worst is None else worst.value
            says, folded = first_said(one.says, 0)
            found.append(LibraryChange(effect, one.library, one.since, says, folded, path))
        return tuple(found)

    @property
    def same(self) -> tuple[tuple[str, int, int], ...]:
        """How many tests give the same result, of how many: of all, and by processes."""
        found, places = self.found, {"all": "", "one": ONE, "several": SEVERAL}
        return tuple((css, found.same_of(at), found.compared_of[at]) for css, at in places.items())

    @property
    def folded(self) -> tuple[Folded, ...]:
        """The edits that are folded: those of programs that ran before, and the others."""
        some = (Folded(_FEWER, self.rare), Folded(_OF_ERRORS, self.rare_of_errors))
        return tuple(one for one in some if one.edits)

    @cached_property
    def counted_unknown(self) -> tuple[tuple[str, int], ...]:
        """How many effects have no known edit: of all, and by processes."""
        return counted_places(self.unknown)

    @cached_property
    def unknown(self) -> tuple[EntryView, ...]:
        """The effects without a known edit, but for the silent ones that are shown unfolded."""
        above = [entry for some in self._silent[:MOST_SILENT] for entry in some]
        return tuple(
            entry_view(self.effects.results, self.found, one)
            for one in self.plan.unknown
            if one not in above
        )

    @property
    def unfixed_above(self) -> bool:
        """Return whether effects without a known edit are among the silent ones shown unfolded."""
        return len(self.unknown) < len(self.plan.unknown)

    @cached_property
    def silent(self) -> tuple[EntryView, ...]:
        """Silent differences of programs that ran before, the most severe and common first."""
        return tuple(map(self._silent_view, self._silent))

    @cached_property
    def _silent(self) -> list[list[Entry]]:
        """The entries of silent differences, those of one known issue together.

        A milder known issue of the old side is no difference, if more tests show it now.
        """
        every = silently(self.effects.results, self.found)
        some = (one for one in every if one.effect in SEVERE or not one.met_before)
        return list(by_title(some).values())

    def _silent_view(self, some: Sequence[Entry]) -> EntryView:
        """Return the line of a known issue: by its first effect, and what else it does."""
        entry, *others = some
        view = entry_view(self.effects.results, self.found, entry)
        more = "also " + ", ".join(one.effect.words for one in others) if others else ""
        unfixed = "no tested fix" if entry in self.plan.unknown else ""
        notes = "; ".join(filter(None, (more, self._before(entry), unfixed)))
        return replace(view, title=f"{view.title} ({notes})") if notes else view

    def _before(self, entry: Entry) -> str:
        """Return what the programs of an entry did before; empty if they just ran."""
        if not entry.ran_before:
            return f"an error {self._at_old}"
        if entry.mostly_refused:
            return f"{self._at_old} such code mostly raised an error"
        if not entry.met_before:
            return ""
        return f"{self._at_old} too, in fewer tests"

    @property
    def _at_old(self) -> str:
        """Return where the upgrade starts, in words."""
        old, new = self.pair.old, self.pair.new
        return f"on JAX {old.jax}" if old.jax != new.jax else f"under {side_words(old)}"

    def _shown(self, side: Side) -> frozenset[str]:
        """Return the known issues that have an effect on a side."""
        return self._of_side(side)[0]

    def _replaced(self, side: Side) -> Mapping[str, tuple[str, ...]]:
        """Return the issues by which tests of a known issue fail on a side, by that issue."""
        return self._of_side(side)[1]

    def _instead(self, by: Sequence[str]) -> str:
        """Return a note that an issue's tests meet other issues now, with the worst one's title."""
        known, name = issue_of(self.effects), self.pair.new.implementation
        found = [(known[slug].worst_under(name), known[slug]) for slug in by if slug in known]
        some = [(effect, issue) for effect, issue in found if effect is not None]
        if not some:
            return "some of its tests meet another issue now"
        effect, issue = min(some, key=lambda one: one[0].rank)
        return f"not fixed for some of its tests: {effect.words} now, by “{issue.cause.title}”"

    def _of_side(self, side: Side) -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
        return found_at(self.effects, Where(side.implementation, side.jax))

    @property
    def most_silent(self) -> int:
        """Return how many of them are shown unfolded."""
        return MOST_SILENT

    @property
    def platform(self) -> str:
        """The platform that both sides ran on."""
        return (self.pair.new.target.platform or "").upper()

    @property
    def elsewhere(self) -> str:
        """On which other platforms tests ran, and whether with one device only; empty if none."""
        known = self.effects.kept(platforms.elsewhere)
        if not known:
            known[""] = platforms.elsewhere(self.effects.every)
        found: str = known[""]
        return found

    @property
    def platforms_page(self) -> str:
        """The page of results on other platforms."""
        return platforms.PAGE

    @property
    def prelude(self) -> str:
        """The lines that precede the lines of edits when they are run."""
        return rewrites().prelude.strip()

    @property
    def missing(self) -> str:
        """What was not run on one of the two sides, in a sentence; empty if nothing."""
        return missing(self.found)

    @cached_property
    def removed(self) -> Removed:
        """The public names that go away between the two releases."""
        return self._of_releases(removed_between)

    @property
    def libraries(self) -> tuple[Outgrown, ...]:
        """The libraries to upgrade with JAX, of which old versions warn but do not raise."""
        raising = {one.library for one in self.of_libraries.outdated}
        some = outgrown(load_libraries(), self.pair.old.jax, self.pair.new.jax)
        return tuple(one for one in some if one.library not in raising)

    @cached_property
    def of_libraries(self) -> Libraries:
        """What follows the version of a library, whichever the JAX."""
        return self._of_releases(libraries_between)

    def _of_releases(self, compare: Callable[[str, str], Compared]) -> Compared:
        """Return what a function finds between the two releases, once for all implementations."""
        between = self.pair.old.jax, self.pair.new.jax
        known = self.effects.kept(compare)
        if between not in known:
            known[between] = compare(*between)
        found: Compared = known[between]
        return found

    @property
    def as_shard_map(self) -> bool:
        """Return whether it is a move to shard_map from a pmap."""
        return self.pair.new.implementation == SHARD_MAP != self.pair.old.implementation


def _change(page: UpgradeView, change: Change) -> ChangeView:
    results, rewrite = page.effects.results, change.rewrite
    issues: dict[str, Link] = {}
    for entry in change.averts:
        issues.setdefault(entry.title, Link(entry.title, entry_href(results, page.found, entry)))
    tried = {edit.tried for edit in change.edits} - {""}
    note, folded = ("", "") if rewrite is None else rewrite.noted
    return ChangeView(
        title=change.title,
        place=change.place,
        before="" if rewrite is None else rewrite.before,
        after="" if rewrite is None else rewrite.after,
        note=note,
        folded=folded,
        library="" if rewrite is None else rewrite.library,
        effects=tuple((effect.value, _classes(change.averts, effect)) for effect in change.effects),
        where=in_processes(change.averts),
        tried=" and ".join(sorted(tried)),
        instead=all(edit.shard_map_instead for edit in change.edits),
        issues=tuple(islice(issues.values(), _MOST_ISSUES)),
        more=max(0, len(issues) - _MOST_ISSUES),
        shown=tuple(
            Link(remedy.clause, clause_path(remedy.clause)) for remedy in change.remedies[:1]
        ),
        places=_classes(change.averts),
    )


def _classes(entries: Sequence[Entry], effect: object = None) -> str:
    some = (entry for entry in entries if effect is None or entry.effect is effect)
    return places_class({one for entry in some for one in filtered(entry)})


def pages(effects: Effects) -> Iterator[Page | Asset]:
    """Yield everything that is based on effects."""
    some = tuple(pairs(effects))
    yield from home.pages(effects, some)
    # Those between two implementations in one process: their rows change alike in several versions.
    for pair in sorted(some, key=lambda pair: str(pair.new)):
        old, new = side_words(pair.old), side_words(pair.new)
        yield Page(
            pair.path,
            "upgrade",
            UpgradeView(effects, pair),
            f"From {old} to {new}",
            f"What to change in programs that run under {old} when they run under {new}.",
            batch=f"{pair.old.implementation} {pair.new.implementation}",
        )
    dangers = hazards(effects)
    yield from versions.pages(effects, dangers)
    yield from hazard_pages.pages(effects, dangers)
    yield from feed.pages(effects)
