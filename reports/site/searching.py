"""The index of the search, as a script: a page opened from a disk may load nothing else.

An entry is a list: sort, title, address, what it is searched for by, a sentence, how many programs
stand behind it, and, of a statement, who says it and whether that is so: what a document says is
not what JAX does. `find.js` ranks them; it is loaded with the box, the index with the first key
that is pressed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from reports.comparing.changes import cause_of
from reports.errors.messages import Message, Sort
from reports.reading.results import Results
from reports.site import documents, guide
from reports.site.causes import shown_by
from reports.site.errors import error_path, headline
from reports.site.names import cause_path, claim_path, clause_path, version_path
from reports.site.page import Asset
from reports.site.strips import jax_versions, newest_index, newest_version
from reports.site.subjects import clauses_of, subjects
from reports.site.text import plain, shortened

INDEX, SCRIPT = "search.js", "find.js"
_EXAMPLE_LENGTH = 400
_SENTENCE_LENGTH = 400


class Entry(NamedTuple):
    """One thing that can be found; `tags` are what people type, `weight` breaks ties.

    `said_by` stands before a title that someone says, and `holds` after it: whether it is so.
    """

    sort: str
    title: str
    href: str
    tags: str
    text: str
    weight: int
    said_by: str = ""
    holds: str = ""

    @property
    def row(self) -> tuple[str | int, ...]:
        """What the index has of it: nothing that is empty at the end."""
        return self if self.said_by else self[:-2]


def _whole(results: Results) -> Iterator[Entry]:
    """The pages that answer a question of their own, by the words in which it is asked."""
    yield Entry(
        "page",
        "Hazards: crashes, hangs, wrong numbers",
        "hazards.html",
        "crash · crashes · segfault · segmentation fault · abort · core dumped · hang · hangs · "
        "stuck · deadlock · freeze · wrong numbers · wrong results · silent",
        "What may go wrong without a word, or take a whole run with it.",
        0,
    )
    if results.timings:
        yield Entry(
            "page",
            "Cost: time, bytes moved, memory",
            "cost.html",
            "cost · slow · slower · slowdown · performance · regression · speed · time · timing · "
            "benchmark · overhead · latency · bytes · memory · out of memory · oom",
            "What legacy pmap, new pmap and shard_map cost, by version.",
            0,
        )
    if results.claims and results.targets:
        yield Entry(
            "page",
            "Where the documentation is wrong",
            "errata.html",
            "errata · erratum · documentation · docs · guide · wrong documentation · outdated"
            " · false statements · what the guide says wrongly",
            "Statements of JAX's documents that the newest JAX does not fulfil.",
            0,
        )
    yield Entry(
        "page",
        "Unknown: what was not run",
        "unknown.html",
        "unknown · not run · not measured · missing · coverage · gpu · cuda · tpu",
        "Statements without a check, and topologies and platforms that were not run.",
        0,
    )


def pages(results: Results, found: Sequence[Message]) -> Iterator[Asset]:
    """The index and the script that searches it."""
    script = resources.files("reports.site").joinpath(f"templates/{SCRIPT}")
    yield Asset(INDEX, lambda: _index(entries(results, found)))
    yield Asset(SCRIPT, lambda: script.read_text(encoding="utf-8"))


def _index(found: Iterable[Entry]) -> str:
    rows = ",\n".join(json.dumps(one.row, separators=(",", ":")) for one in found)
    return f'"use strict";\nself.pmapIndex = [\n{rows}\n];\n'


def entries(results: Results, found: Sequence[Message]) -> Iterator[Entry]:
    """Pages that answer a question whole, subjects, versions, causes, messages, the rest."""
    yield from _whole(results)
    for part in guide.sections():
        yield Entry("guide", part.title, part.href, " · ".join(part.codes), part.text, 0)
    for one in subjects(results):
        yield Entry(
            "subject", one.title, one.path, " · ".join(one.words), "", len(clauses_of(results, one))
        )
    for jax in reversed(jax_versions(results)):
        yield Entry(
            "page",
            f"JAX {jax}: what changed in it, and its hazards",
            version_path(jax),
            f"{jax} · jax {jax} · jaxlib {jax} · version · release · changelog",
            "What became true, false, slower or fixed, and all that may crash, hang or be wrong.",
            0,
        )
    shown, still = _programs_by_cause(results), _still(results)
    for cause in results.causes.values():
        yield Entry(
            "cause" if cause.cause in still else "ended",
            plain(cause.title),
            cause_path(cause.cause),
            " · ".join(cause.tags),
            shortened(plain(cause.sentence), _SENTENCE_LENGTH),
            shown[cause.cause],
        )
    for message in found:
        yield Entry(
            message.sort.value,
            headline(message),
            error_path(message.slug),
            " · ".join((*message.types, *_signal_words(message))),
            shortened(" ".join(message.example.split()), _EXAMPLE_LENGTH),
            len(message.clauses),
        )
    clauses = results.clauses_of_claims()
    held, newest = documents.newest_marks(results), newest_version(results)
    for claim in results.claims.values():
        mark = held[claim.slug]
        yield Entry(
            "statement",
            plain(claim.statement),
            claim_path(claim),
            claim.slug,
            f"{claim.document_title}: {claim.heading}",
            len(clauses[claim.slug]),
            "As under legacy pmap" if claim.silent else f"“{plain(claim.document_title)}” says",
            f"{mark.as_legacy if claim.silent else mark.truth} on JAX {newest}",
        )
    for clause in results.clauses.values():
        yield Entry(
            "program", plain(clause.title), clause_path(clause.clause), clause.clause, "", 1
        )


def _still(results: Results) -> set[str]:
    """The causes that the newest JAX shows, and those that no cell does."""
    shown = shown_by(results)
    newest = results.targets[newest_index(results)].key if results.targets else None
    ended = {slug for slug, keys in shown.items() if all(key.target != newest for key in keys)}
    return {*results.causes} - ended


def _signal_words(message: Message) -> tuple[str, ...]:
    """What people call the end of a process by a signal."""
    if message.sort is not Sort.SIGNAL:
        return ()
    named = {"SIGSEGV": "segfault", "SIGABRT": "abort"}
    return ("crash", *(word for name, word in named.items() if name in message.title))


def _programs_by_cause(results: Results) -> Counter[str]:
    pairs = {(slug, key.clause) for key, one in results.outcomes.items() if (slug := cause_of(one))}
    named = {(one.cause, one.clause) for one in results.clauses.values() if one.cause}
    return Counter(slug for slug, _ in pairs | named)
