"""The messages that a user of pmap meets, each with where it appears and what is behind it.

Taken from what the workers recorded: exceptions, warnings, and the signals by which processes
ended. A message stands for all that differ only in names, numbers and shapes. The harness's own
messages are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from conformance.model.records import Cell
from reports.analysis.comparing.changes import cause_of
from reports.analysis.effects.digest import job_end, of_job
from reports.analysis.effects.rewrites import Usage
from reports.analysis.errors.wording import SLOT, address, first_sentence, template
from reports.analysis.issues.derive import usage_of
from reports.store.alike import Once
from reports.store.order import version_order
from reports.store.outcomes import CellKey
from reports.store.results import Results
from reports.store.shown import Shown, versions_run, where_shown

_EXAMPLE_LENGTH = 1500
_QUOTE_LENGTH = 8  # characters of a cause's tag that are more than a name
_OURS = ("conformance.", "harness.")
# What a program of its own printed last: a signal of nothing but the error itself.
_OF_A_CHILD = re.compile(r"(?:(?:process \d+|exit(?: status)? \d+): )*(?:(?P<type>\w+): )?")
_JOB = "job"  # the phase of what a process of a plain job met
# The signals by which such a process ends itself: others are sent by a test.
_FAULTS = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")
# Names of the harness's own functions make no good example of what a user reads.
_HARNESS_NAMES = ("Implementation", "conformance")


class Sort(StrEnum):
    """How a message reaches the user."""

    ERROR = "error"
    WARNING = "warning"
    SIGNAL = "signal"


class RecordedMessage(NamedTuple):
    """A message as one process recorded it; `phase` is what JAX was doing."""

    sort: Sort
    type: str
    text: str
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is behind a message in some programs: a known issue or, without one, a claim.

    `until` is the last JAX with it; empty if that is the newest that was run. `shown` is where.
    """

    cause: str
    claim: str
    clauses: tuple[str, ...]
    until: str = ""
    shown: tuple[Shown, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `example` is one complete wording, `related` are other wordings of the same
    problem.
    """

    slug: str
    sort: Sort
    types: tuple[str, ...]
    title: str
    example: str
    phases: tuple[str, ...]
    meanings: tuple[Meaning, ...]
    shown: tuple[Shown, ...]
    related: tuple[str, ...] = ()

    @property
    def clauses(self) -> tuple[str, ...]:
        """The programs that meet it, ordered by what is behind it."""
        return tuple(dict.fromkeys(id for one in self.meanings for id in one.clauses))


@dataclass(slots=True)
class _Gathered:
    sort: Sort
    types: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    titles: set[str] = field(default_factory=set)
    template: str = ""
    example: str = ""
    keys: dict[CellKey, str] = field(default_factory=dict)  # and the cause of each
    jobs: set[CellKey] = field(default_factory=set)  # those that start their own processes

    def add(self, key: CellKey, cause: str, message: RecordedMessage, words: str) -> None:
        self.types[message.type] += 1
        if message.phase == _JOB:
            self.jobs.add(key)
        elif message.phase and message.phase != "unknown":
            self.phases[message.phase] += 1
        self.template = self.template or words
        self.keys[key] = cause
        sentence = first_sentence(message.text)
        if sentence not in self.titles and len(self.titles) < 2:
            self.titles.add(sentence)
        if not self.example or _clearer(message.text, self.example):
            self.example = message.text


def messages(
    results: Results, messages_of: Callable[[Cell], tuple[RecordedMessage, ...]] | None = None
) -> tuple[Message, ...]:
    """Return every message of the results, by sort and type, the most frequent first."""
    gathered: dict[str, _Gathered] = {}
    known: dict[RecordedMessage, tuple[str, str]] = {}
    messages_of = messages_of or Once(recorded_messages).to(recorded_messages)
    for key, outcome in results.outcomes.items():
        for message in messages_of(outcome.runs[-1].cell) if outcome.runs else ():
            if message not in known:
                words = template(message.text) if message.sort is not Sort.SIGNAL else message.text
                known[message] = _page_of(message, words), words
            name, words = known[message]
            if name in gathered and gathered[name].sort is not message.sort:
                name = f"{name}-{message.sort.value}"  # of one text, an error beside a warning
            one = gathered.setdefault(name, _Gathered(message.sort))
            clause = results.clauses[key.clause]
            one.add(key, cause_of(outcome) or clause.cause, message, words)
    ran = versions_run(results)
    newest = max(set().union(*ran.values()), key=version_order, default="")
    found = [_message(results, name, one, ran, newest) for name, one in gathered.items()]
    return tuple(_with_related(_ordered(found)))


def _page_of(message: RecordedMessage, words: str) -> str:
    if message.sort is Sort.SIGNAL:
        return address("killed by", message.type)
    return address(message.type, words)


def recorded_messages(cell: Cell) -> tuple[RecordedMessage, ...]:
    """Return what each process raised, warned of and died of, each once."""
    steps = (step for one in cell.observations for step in _list(one.get("steps")))
    messages = [one for step in steps if isinstance(step, dict) for one in _of_step(step)]
    died = cell.fault.processes if cell.fault else ()
    messages += [
        RecordedMessage(Sort.SIGNAL, one.signal, one.log or "") for one in died if one.signal
    ]
    return tuple(dict.fromkeys(messages))


def _of_step(step: Mapping[str, Any]) -> Iterator[RecordedMessage]:
    exception = step.get("exception")
    if isinstance(exception, dict):
        name, text = str(exception.get("type", "")), str(exception.get("message") or "")
        if str(exception.get("module") or "").startswith(_OURS):
            match = _OF_A_CHILD.match(text)
            name, text = (match["type"], text[match.end() :]) if match else ("", text)
            text = text.partition(" / ")[0]
        if name:
            yield RecordedMessage(Sort.ERROR, name, text, str(exception.get("phase") or ""))
    extra = step.get("extra")
    if of_job(str(step.get("name"))) and isinstance(extra, dict) and job_end(extra)[0] in _FAULTS:
        yield RecordedMessage(Sort.SIGNAL, job_end(extra)[0], "", _JOB)
    for warning in _list(step.get("warnings")):
        if isinstance(warning, dict):
            yield RecordedMessage(
                Sort.WARNING, str(warning.get("category", "")), str(warning.get("message") or "")
            )


def _message(
    results: Results,
    name: str,
    gathered: _Gathered,
    ran: Mapping[tuple[str, str, str], set[str]],
    newest: str,
) -> Message:
    types = tuple(type for type, _ in gathered.types.most_common())
    sentence = gathered.titles.pop() if len(gathered.titles) == 1 else gathered.template
    if gathered.sort is Sort.SIGNAL:
        title = f"The process is killed by {types[0]}"
    elif not gathered.template.strip(f"{SLOT} .,:()"):
        title = f"{types[0]} {first_sentence(gathered.example)}".strip()
        title = title if gathered.example.strip() else f"{types[0]} without a message"
    else:
        title = sentence
    return Message(
        slug=name,
        sort=gathered.sort,
        types=types,
        title=title,
        example=gathered.example[:_EXAMPLE_LENGTH]
        + SLOT * (len(gathered.example) > _EXAMPLE_LENGTH),
        phases=tuple(phase for phase, _ in gathered.phases.most_common()),
        meanings=_meanings(results, gathered, ran, newest),
        shown=tuple(where_shown(gathered.keys, ran, gathered.jobs)),
    )


def _meanings(
    results: Results,
    one: _Gathered,
    ran: Mapping[tuple[str, str, str], set[str]],
    newest: str,
) -> tuple[Meaning, ...]:
    """Return what is behind a message in the newest JAX, then in older ones; known issues first.

    Known issues that most programs meet come first, then those that quote the message, then those
    of most tests. A signal quotes nothing, and is often due to a mistake: only what needs an
    unusual argument or call comes after the rest. A warning counts for a known issue only if that
    quotes it; then for that one, whatever else its program shows.
    """
    jobs = one.jobs
    quoted_by = _quoting_issue(results, one.example) if one.sort is Sort.WARNING else ""
    quoting = {slug: _quotes(results, slug, one.example) for slug in {*one.keys.values()} if slug}
    groups: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    seen: dict[tuple[str, str], list[CellKey]] = defaultdict(list)
    for key, slug in one.keys.items():
        explaining = slug if one.sort is not Sort.WARNING or quoting.get(slug) else quoted_by
        group = explaining, "" if explaining else results.clauses[key.clause].claim
        groups[group][key.clause] = None
        seen[group].append(key)
    last = {
        group: max((key.target.jax or key.target.target for key in some), key=version_order)
        for group, some in seen.items()
    }
    until = {group: "" if jax == newest else jax for group, jax in last.items()}
    of_signal = one.sort is Sort.SIGNAL

    def likelihood(slug: str, clauses: Iterable[str]) -> int:
        rank = _usage(results, slug, clauses)
        return int(rank == Usage.UNUSUAL.rank) if of_signal else rank

    order = sorted(
        groups,
        key=lambda one: (
            until[one] != "",
            likelihood(one[0], groups[one]),
            not quoting.get(one[0]),
            not one[0],
            -len(groups[one]),
            one,
        ),
    )
    return tuple(
        Meaning(*one, tuple(groups[one]), until[one], tuple(where_shown(seen[one], ran, jobs)))
        for one in order
    )


def _usage(results: Results, slug: str, clauses: Iterable[str]) -> int:
    """Return how common a known issue is, as a sort key; what is none comes last."""
    cause = results.causes.get(slug)
    return usage_of(results, cause, clauses).rank if cause is not None else len(Usage)


def _quoting_issue(results: Results, text: str) -> str:
    """Return the known issue with the longest search words in the message; empty without one."""
    found = {
        len(tag): slug
        for slug, cause in results.causes.items()
        for tag in cause.tags
        if len(tag) >= _QUOTE_LENGTH and tag in text
    }
    return found[max(found)] if found else ""


def _quotes(results: Results, slug: str, text: str) -> bool:
    """Return whether a known issue's search words are in the message."""
    tags = results.causes[slug].tags if slug in results.causes else ()
    return any(len(tag) >= _QUOTE_LENGTH and tag in text for tag in tags)


def _ordered(found: Iterable[Message]) -> list[Message]:
    of_type: Counter[tuple[Sort, str]] = Counter()
    some = list(found)
    for one in some:
        of_type[one.sort, one.types[0]] += len(one.clauses)
    order = list(Sort)
    return sorted(
        some,
        key=lambda m: (
            order.index(m.sort),
            -of_type[m.sort, m.types[0]],
            m.types[0],
            -len(m.clauses),
            m.slug,
        ),
    )


def _with_related(found: list[Message]) -> Iterator[Message]:
    """Yield each message with others of the same most frequent known issue, from other versions."""
    by_cause: dict[str, list[str]] = defaultdict(list)
    for one in found:
        for cause in {meaning.cause for meaning in one.meanings} - {""}:
            by_cause[cause].append(one.slug)
    for one in found:
        others = by_cause[one.meanings[0].cause] if one.meanings[0].cause else []
        yield replace(one, related=tuple(other for other in others if other != one.slug))


def _clearer(text: str, other: str) -> bool:
    """Return whether a wording is the better example: without the harness's names, then shorter."""

    def rank(some: str) -> tuple[bool, int, str]:
        return any(name in some for name in _HARNESS_NAMES), len(some), some

    return rank(text) < rank(other)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
