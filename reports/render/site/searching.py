"""The search index, as a script: a page opened from a disk may load nothing else.

An entry is a list: kind, title, address, search words, a sentence, the number of tests, who says
it, and where it holds, because what a document says or a test expects is not what JAX does.
`find.js` ranks them; it is on every page, and loads the index with the first key.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from reports.analysis.comparing.changes import cause_of
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.errors.messages import Message, Sort
from reports.analysis.issues.derive import issues
from reports.analysis.public_names import load_names
from reports.render.site import (
    documents,
    guide,
    removed,
    user_reports,
)
from reports.render.site.errors import error_path, headline
from reports.render.site.marks import Mark
from reports.render.site.names import (
    cause_path,
    claim_path,
    clause_path,
    implementation_words,
    version_path,
)
from reports.render.site.page import Asset, template_text
from reports.render.site.question_pages import question_pages
from reports.render.site.strips import (
    Held,
    expectations_held,
    jax_versions,
    newest_version,
    ranges,
)
from reports.render.site.subjects import clauses_of, subjects
from reports.render.site.text import plain, shortened
from reports.render.site.user_reports import reports
from reports.store.results import Results

SCRIPT = "find.js"
PART_SIZE = 250_000  # characters of a file of the index
_EXAMPLE_LENGTH = 400
_SENTENCE_LENGTH = 400
_NAME = re.compile(r"\b(?:jax|jnp|flax|optax|chex|equinox|lax|multihost_utils)(?:\.\w+)+")
_OPTION = re.compile(
    r"\b(in_axes|out_axes|axis_size|axis_index_groups|static_broadcasted_argnums|donate_argnums"
    r"|check_vma|axis_names|in_specs|out_specs|tiled)="
)
_USUAL = frozenset(("jax.pmap", "jnp.arange", "jnp.ones", "jnp.zeros", "jnp.float32", "jax.Array"))


class Entry(NamedTuple):
    """One search result; `tags` are what people type, `weight` breaks ties.

    `source` precedes a title that somebody states, and `holds` follows it: whether it is so.
    """

    sort: str
    title: str
    href: str
    tags: str
    text: str
    weight: int
    source: str = ""
    holds: str = ""

    @property
    def row(self) -> tuple[str | int, ...]:
        """Return the index entry, without empty values at the end."""
        return self if self.source or self.holds else self[:-2]


def pages(effects: Effects, found: Sequence[Message]) -> Iterator[Asset]:
    """Yield the index and the script that searches it."""
    rows = (json.dumps(one.row, separators=(",", ":")) for one in entries(effects, found))
    parts = list(_parts(rows)) or [""]
    for number, part in enumerate(parts):
        text = f'"use strict";\nself.pmapIndex.push(\n{part}\n);\n'
        yield Asset(index_path(number), partial(str, text))
    yield Asset(SCRIPT, lambda: template_text(SCRIPT) + _files(len(parts)))


def index_path(number: int) -> str:
    """The path of a part of the index."""
    return f"search-{number}.js"


def _files(parts: int) -> str:
    """The line of the script that says of how many files the index is."""
    return f"const PARTS = {parts};\n"


def _parts(rows: Iterable[str]) -> Iterator[str]:
    """Rows of the index as the texts of files of bounded size."""
    part: list[str] = []
    size = 0
    for row in rows:
        if part and size + len(row) > PART_SIZE:
            yield ",\n".join(part)
            part, size = [], 0
        part.append(row)
        size += len(row) + 2
    if part:
        yield ",\n".join(part)


def entries(effects: Effects, found: Sequence[Message]) -> Iterator[Entry]:
    """Yield pages that answer a question, subjects, versions, known issues, messages, the rest."""
    results, reported = effects.results, _reported()
    for page in question_pages(effects.every):
        yield Entry("page", page.title, page.href, page.tags, page.text, 0)
    yield from _of_guide()
    yield from _of_subjects(results)
    yield from _of_versions(results)
    yield from _of_causes(effects, reported)
    yield from _removed(results)
    yield from _of_messages(found)
    if results.targets:
        yield from _of_reports()
    yield from _of_claims(results)
    yield from _of_clauses(results, reported)


def _of_guide() -> Iterator[Entry]:
    for part in guide.sections():
        yield Entry("guide", part.title, part.href, " · ".join(part.codes), part.text, 0)


def _of_subjects(results: Results) -> Iterator[Entry]:
    for one in subjects(results):
        yield Entry(
            "subject", one.title, one.path, " · ".join(one.words), "", len(clauses_of(results, one))
        )


def _of_versions(results: Results) -> Iterator[Entry]:
    for jax in reversed(jax_versions(results)):
        yield Entry(
            "page",
            f"JAX {jax}: what changed, and its known issues",
            version_path(jax),
            f"{jax} · jax {jax} · jaxlib {jax} · version · release · changelog",
            "Changes of behaviour, cost and documented claims, and its known issues.",
            0,
        )


def _of_causes(effects: Effects, reported: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    results = effects.results
    shown, still, seen = _programs_by_cause(results), _still(effects), _seen(effects)
    for cause in results.causes.values():
        yield Entry(
            "cause" if cause.cause in still else "ended",
            plain(cause.title),
            cause_path(cause.cause),
            " · ".join((*cause.tags, *reported.get(cause.cause, ()))),
            f"{shortened(plain(cause.sentence), _SENTENCE_LENGTH)} {_names(cause.program)}",
            shown[cause.cause],
            "",
            seen.get(cause.cause, ""),
        )


def _of_messages(found: Sequence[Message]) -> Iterator[Entry]:
    for message in found:
        yield Entry(
            message.sort.value,
            headline(message),
            error_path(message.slug),
            " · ".join((*message.types, *_signal_words(message))),
            shortened(" ".join(message.example.split()), _EXAMPLE_LENGTH),
            len(message.clauses),
        )


def _of_reports() -> Iterator[Entry]:
    for report in reports():
        yield Entry(
            "report",
            plain(report.title),
            f"{user_reports.PAGE}#{report.anchor}",
            f"{report.name} · {report.address}",
            "",
            0,
            "Users report",
        )


def _of_claims(results: Results) -> Iterator[Entry]:
    clauses = results.clauses_of_claims()
    marks, newest = documents.newest_marks(results), newest_version(results)
    for claim in results.claims.values():
        mark, apis = marks[claim.slug]
        under = f": {', '.join(one.words for one in apis)}" if mark is Mark.PARTLY else ""
        yield Entry(
            "statement",
            plain(claim.statement),
            claim_path(claim),
            claim.slug,
            f"{claim.document_title}: {claim.heading}",
            len(clauses[claim.slug]),
            "As under legacy pmap" if claim.silent else f"“{plain(claim.document_title)}” says",
            f"{mark.as_legacy if claim.silent else mark.truth} on JAX {newest}{under}",
        )


def _of_clauses(results: Results, reported: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    holds, newest = expectations_held(results), newest_version(results)
    for clause in results.clauses.values():
        yield Entry(
            "program",
            plain(clause.title),
            clause_path(clause.clause),
            " · ".join((clause.clause, *reported.get(clause.clause, ()))),
            _names(clause.source),
            1,
            "Expected",
            holds.get(clause.clause, Held(f"not run on JAX {newest}", True)).words,
        )


def _reported() -> dict[str, list[str]]:
    """Return, for each known issue and test, the words of the reports that it answers."""
    found: dict[str, list[str]] = {}
    for report in reports():
        for name in (*report.causes, *report.clauses):
            found.setdefault(name, []).append(report.words)
    return found


def _removed(results: Results) -> Iterator[Entry]:
    """Names that JAX removed or warns of, by the errors that a program with them ends with."""
    names = load_names()
    for one in names.names:
        until = f"removed in JAX {names.gone_since(one)}" if one.gone else "deprecated"
        yield Entry(
            "removed",
            f"{one.text}: {until}",
            removed.name_path(results, one),
            " · ".join((one.text, one.attribute, *removed.errors(one))),
            one.warning,
            1 if one.is_of_subject else 0,
        )


def _names(source: str) -> str:
    """Return the names of library functions that a program calls, as search words."""
    names = (one for one in _NAME.findall(source) if one not in _USUAL)
    return " ".join(dict.fromkeys((*names, *_OPTION.findall(source))))


def _seen(effects: Effects) -> dict[str, str]:
    """Return for each known issue where it shows: implementations, and the versions of each."""
    there = jax_versions(effects.results)
    edits = rewrites().by_cause
    return {
        one.cause.cause: f"since {one.library} {edits[one.cause.cause].since}"
        if one.library
        else "; ".join(
            f"{implementation_words(name)}: JAX {ranges(there, some)}"
            for name in one.implementations
            if (some := one.shown_in(name))
        )
        for one in issues(effects)
    }


def _still(effects: Effects) -> set[str]:
    """Return the known issues that the newest JAX shows, and those that no cell shows."""
    newest = jax_versions(effects.results)[-1:]
    ended = {
        one.cause.cause
        for one in issues(effects)
        if not any(one.shown_in(name).intersection(newest) for name in one.implementations)
    }
    return {*effects.results.causes} - ended


def _signal_words(message: Message) -> tuple[str, ...]:
    """Return common names for the end of a process by a signal."""
    if message.sort is not Sort.SIGNAL:
        return ()
    named = {"SIGSEGV": "segfault · segmentation fault", "SIGABRT": "abort"}
    return ("crash", *(word for name, word in named.items() if name in message.title))


def _programs_by_cause(results: Results) -> Counter[str]:
    pairs = {(slug, key.clause) for key, one in results.outcomes.items() if (slug := cause_of(one))}
    named = {(one.cause, one.clause) for one in results.clauses.values() if one.cause}
    return Counter(slug for slug, _ in pairs | named)
