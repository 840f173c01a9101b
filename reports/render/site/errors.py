"""Error messages: a list, and a page for each that is found by its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from conformance.model.records import Target
from reports.analysis.effects.remedies import Remedies as Known
from reports.analysis.effects.rewrites import Rewrite, rewrites
from reports.analysis.effects.started import started_where_it_fails
from reports.analysis.errors.messages import Meaning, Message, Sort
from reports.render.site.names import (
    Link,
    cause_link,
    claim_path,
    clause_link,
    clause_path,
    implementation_words,
)
from reports.render.site.page import Page
from reports.render.site.remedies import Remedies, newest, remedies
from reports.store.order import LEGACY, LEGACY_REMOVED, implementation_order, version_order
from reports.store.results import Results
from reports.store.shown import Shown

PAGE = "errors.html"
_MEANINGS_HELPED = 8  # of more a reader does not compare the remedies
_HEADINGS = {Sort.ERROR: "Errors", Sort.WARNING: "Warnings", Sort.SIGNAL: "Signals"}
_PHASES = {
    "construct": "`jax.pmap(f)` is called",
    "arguments": "its arguments are moved to devices",
    "trace": "the function is traced",
    "lower": "the program is built, before it is compiled",
    "compile": "the program is compiled",
    "execute": "the program runs",
    "fetch": "the result is read",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A message in the list: its page, its first meaning and how many more known issues, and
    where it shows.
    """

    link: Link
    meaning: Link
    more: int
    known: bool  # whether that is a known issue, and not a claim whose test met it
    programs: int
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The messages of one type of error."""

    type: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class ErrorsPage:
    """All messages, by kind and type."""

    sections: tuple[tuple[str, str, tuple[Group, ...]], ...]
    count: int


@dataclass(frozen=True, slots=True)
class MeaningView:
    """What is behind a message, in a sentence, with the programs that show it.

    `until` is the last JAX with it; empty if the newest has it. `shown` is where it was met, and
    `rewrite` the edit that averts it.
    """

    link: Link
    sentence: str
    is_cause: bool
    programs: int
    until: str
    shown: tuple[tuple[str, Shown], ...] = ()
    rewrite: Rewrite | None = None


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """Everything about one message."""

    message: Message
    when: tuple[str, ...]
    meanings: tuple[MeaningView, ...]
    newest: str
    program: str
    command: str
    program_of: Link
    remedies: Remedies
    shown: tuple[tuple[str, Shown], ...]
    clauses: tuple[Link, ...]
    related: tuple[Link, ...]
    upstream: tuple[str, ...]
    signals: tuple[Link, ...]  # the other ones, shown for a signal
    advice: tuple[str, ...]  # which versions are safest, shown for a signal

    @property
    def current(self) -> tuple[MeaningView, ...]:
        """Return the known issues behind it in the newest JAX, or ever, if none is."""
        known = [one for one in self.meanings if one.is_cause]
        return tuple([one for one in known if not one.until] or known)

    @property
    def ended(self) -> tuple[MeaningView, ...]:
        """Return those that were behind it in earlier versions, if the newest has another."""
        return tuple(one for one in self.meanings if one.is_cause and one not in self.current)

    @property
    def claims(self) -> tuple[MeaningView, ...]:
        """Return the claims whose tests met it without a known issue."""
        return tuple(one for one in self.meanings if not one.is_cause)


def error_path(slug: str) -> str:
    """Return the address of a message's page."""
    return f"errors/{slug}.html"


def headline(message: Message) -> str:
    """Return a message as it stands at the end of a traceback, by which it is searched for."""
    if message.sort is Sort.SIGNAL or message.title.startswith(message.types[0]):
        return message.title
    return f"{message.types[0]}: {message.title}"


def pages(results: Results, found: Sequence[Message], advice: tuple[str, ...]) -> Iterator[Page]:
    """Yield the list, and a page per message; nothing if no cell has a message.

    `advice` says which versions are safest for jax.pmap; the pages of signals show it.
    """
    if not found:
        return
    yield Page(
        PAGE,
        "errors",
        _list(results, found),
        "What does this error mean?",
        "Every error, warning and signal that pmap code met, with its cause and what helps.",
    )
    known = Known(results)
    at = newest(results)
    titles = {one.slug: headline(one) for one in found}
    signals = [
        Link(titles[one.slug], error_path(one.slug)) for one in found if one.sort is Sort.SIGNAL
    ]
    for one in found:
        others = tuple(link for link in signals if link.href != error_path(one.slug))
        view = _page(results, one, known, at, titles, others, advice)
        first = view.meanings[0]
        yield Page(
            error_path(one.slug), "error", view, headline(one), first.sentence or first.link.text
        )


def _list(results: Results, found: Sequence[Message]) -> ErrorsPage:
    def rows(some: Iterator[Message]) -> tuple[Row, ...]:
        return tuple(
            Row(
                link=Link(one.title, error_path(one.slug)),
                meaning=_meaning(results, one.meanings[0]).link,
                more=sum(other.cause in results.causes for other in one.meanings[1:]),
                known=one.meanings[0].cause in results.causes,
                programs=len(one.clauses),
                where=tuple(_where(shown) for shown in one.shown),
            )
            for one in some
        )

    return ErrorsPage(
        sections=tuple(
            (
                _HEADINGS[sort],
                sort.value,
                tuple(
                    Group(type, rows(some))
                    for type, some in groupby(of_sort, key=lambda one: one.types[0])
                ),
            )
            for sort, of_sort in groupby(found, key=lambda one: one.sort)
        ),
        count=len(found),
    )


def _under(shown: Shown) -> str:
    """Return the implementation under which a message was met: selected, where it is removed."""
    words = implementation_words(shown.implementation)
    first = shown.jax.replace(",", "").split()[0]
    removed = shown.implementation == LEGACY and version_order(first) >= LEGACY_REMOVED
    return f"{words} (selected, but removed)" if removed else words


def _where(shown: Shown) -> str:
    return f"{_under(shown)}: JAX {shown.jax}"


def _page(
    results: Results,
    message: Message,
    known: Known,
    at: Target | None,
    titles: Mapping[str, str],
    signals: tuple[Link, ...],
    advice: tuple[str, ...],
) -> ErrorPage:
    causes = [results.causes[m.cause] for m in message.meanings if m.cause in results.causes]
    ids = message.clauses
    program, command, program_link = _program(results, message)
    helps = [id for cause in causes[:_MEANINGS_HELPED] for id in cause.remedies]
    return ErrorPage(
        message=message,
        when=tuple(_PHASES[phase] for phase in message.phases if phase in _PHASES),
        meanings=tuple(_meaning(results, one) for one in message.meanings),
        newest=at.jax or "" if at is not None else "",
        program=program,
        command=command,
        program_of=program_link,
        remedies=remedies(results, [*helps, *known.of_clauses(ids)], at),
        shown=_named(message.shown),
        clauses=tuple(Link(results.clauses[id].title, clause_path(id)) for id in ids),
        related=tuple(Link(titles[slug], error_path(slug)) for slug in message.related),
        upstream=tuple(dict.fromkeys(link for cause in causes[:3] for link in cause.links)),
        signals=signals,
        advice=advice,
    )


def _meaning(results: Results, meaning: Meaning) -> MeaningView:
    cause = results.causes.get(meaning.cause)
    if cause is not None:
        link = cause_link(results, meaning.cause)
        return MeaningView(
            link,
            cause.sentence,
            True,
            len(meaning.clauses),
            meaning.until,
            _named(meaning.shown),
            rewrites().by_cause.get(meaning.cause),
        )
    slug = meaning.claim or results.clauses[meaning.clauses[0]].claim
    claim = results.claims.get(slug)
    if claim is None:
        link = clause_link(results, meaning.clauses[0])
    else:
        link = Link(claim.statement, claim_path(claim))
    return MeaningView(link, "", False, len(meaning.clauses), meaning.until, _named(meaning.shown))


def _named(some: Sequence[Shown]) -> tuple[tuple[str, Shown], ...]:
    return tuple((_under(one), one) for one in some)


def _program(results: Results, message: Message) -> tuple[str, str, Link]:
    """Return the program of the first known issue that has one; else the shortest that met the
    message.
    """
    for one in message.meanings:
        cause = results.causes.get(one.cause)
        if cause is not None and cause.program:
            command = started_where_it_fails(cause, _order(message), results)
            return cause.program, command, cause_link(results, one.cause)
    shortest = min(message.clauses, key=lambda id: (len(results.clauses[id].source), id))
    clause = results.clauses[shortest]
    return clause.source, "", Link(clause.title, clause_path(shortest))


def _order(message: Message) -> list[str]:
    """Return the implementations that meet it, legacy pmap last."""
    met = [one.implementation for one in message.shown]
    return sorted(met, key=lambda name: (name == LEGACY, implementation_order(name)))
