"""The search index, as a script: a page opened from a disk may load nothing else.

An entry is a list: kind, title, address, search words, a sentence, the number of tests, who says
it, and where it holds, because what a document says or a test expects is not what JAX does.
`find.js` ranks them; it is on every page, and loads the index with the first key.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import resources
from typing import NamedTuple

from reports.analysis.comparing.changes import cause_of
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.errors.messages import Message, Sort
from reports.analysis.gradients import taken
from reports.analysis.issues.derive import issues
from reports.analysis.public_names import load_names
from reports.render.site import (
    documents,
    gradients,
    guide,
    jitted,
    libraries,
    removed,
    user_reports,
)
from reports.render.site.errors import error_path, headline
from reports.render.site.marks import Mark, together
from reports.render.site.names import (
    cause_path,
    claim_path,
    clause_path,
    implementation_words,
    version_path,
)
from reports.render.site.page import Asset
from reports.render.site.strips import (
    jax_versions,
    marks_of_clauses,
    newest_index,
    newest_version,
    ranges,
)
from reports.render.site.subjects import clauses_of, subjects
from reports.render.site.text import plain, shortened
from reports.render.site.user_reports import reports
from reports.store.order import implementation_order
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
_SAYS = {Mark.RIGHT: "holds", Mark.PARTLY: "holds in part", Mark.WRONG: "does not hold"}


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


def _whole(results: Results) -> Iterator[Entry]:
    """Yield the pages that answer a question, with the words in which it is asked."""
    yield Entry(
        "page",
        "Upgrade: choose from and to",
        "index.html",
        "upgrade · migrate · migration · default · which pmap · legacy · timeline · home",
        "Which pmap is the default in which version of JAX, and what an upgrade changes.",
        0,
    )
    yield Entry(
        "page",
        "Crashes, hangs and wrong values",
        "hazards.html",
        "crash · crashes · segfault · segmentation fault · abort · core dumped · hang · hangs · "
        "stuck · deadlock · freeze · wrong numbers · wrong values · wrong results · silent",
        "Silent failures, and failures that end the job.",
        0,
    )
    if results.targets:
        yield Entry(
            "page",
            "Which version is safest",
            "versions.html",
            "safest · safe · safest version · best version · recommended version · which version · "
            "which version is safest · which version should i use · stable · pin",
            "Per version and implementation, how many known issues an ordinary program meets.",
            0,
        )
    if taken(results):
        yield Entry(
            "page",
            gradients.TITLE,
            gradients.PAGE,
            "gradient · gradients · grad · psum · pmean · loss · factor · too large · too small · "
            "gradient of psum · gradient of pmean · times the devices · check_vma · data parallel",
            "By which factor a gradient is wrong, in the body and around the map.",
            0,
        )
    if results.timings:
        yield Entry(
            "page",
            "Performance and memory",
            "cost.html",
            "cost · slow · slower · slowdown · performance · regression · speed · time · timing · "
            "benchmark · overhead · latency · bytes · memory · peak memory · out of memory · oom",
            "What legacy pmap, new pmap and shard_map cost, by version.",
            0,
        )
    if results.claims and results.targets:
        yield Entry(
            "page",
            "Documentation errors",
            "errata.html",
            "errata · erratum · documentation · docs · guide · wrong documentation · outdated"
            " · false statements · migration guide · documentation errors",
            "Claims of JAX's documents that do not hold, with what holds instead.",
            0,
        )
    yield Entry(
        "page",
        "Coverage: what was not run",
        "unknown.html",
        "unknown · not run · not measured · missing · coverage · gpu · cuda · tpu · rocm · platform"
        " · plugin · metal · accelerator",
        "Claims without a test, and topologies and platforms that were not run.",
        0,
    )
    yield Entry(
        "page",
        "My import fails: names that JAX removed",
        removed.PAGE,
        "removed · import · imports · ImportError · AttributeError · ModuleNotFoundError · "
        "cannot import name · has no attribute · no module named · my import fails · deprecated",
        "Public names of JAX that went away, since when, and what JAX says of a replacement.",
        0,
    )
    if results.targets:
        yield Entry(
            "page",
            "User reports",
            user_reports.PAGE,
            "user reports · reports · github issues · bug reports · tracker · reported",
            "What users reported to public trackers, what shows it, and where it is still so.",
            0,
        )
    yield Entry(
        "page",
        "Libraries and JAX: which versions work together",
        libraries.PAGE,
        "libraries · library · flax · optax · orbax · orbax-checkpoint · equinox · chex · haiku · "
        "dm-haiku · compatible · compatibility · which version of flax · chex.fake_pmap",
        "Which version of a library installs beside a JAX, and what its functions do there.",
        0,
    )
    if any(jitted_id in results.clauses for _, jitted_id in jitted.PATTERNS):
        yield Entry(
            "page",
            "pmap, shard_map and plain jit",
            jitted.PAGE,
            "jit · jax.jit · plain jit · NamedSharding · replace pmap by jit · pjit · "
            "in_shardings · out_shardings · pmap or jit · jit instead of pmap",
            "The same programs as pmap, as shard_map and as plain jit: values, communication, "
            "memory, time.",
            0,
        )
    packages = sorted({name for one in results.targets for name in one.packages})
    yield Entry(
        "page",
        "Download: results, environments, versions of libraries",
        "targets.html",
        " · ".join(("download", "data", "json", "environment", "provenance", "libraries")),
        f"JAX, jaxlib, NumPy, Python; {', '.join(packages)}",
        0,
    )


def pages(effects: Effects, found: Sequence[Message]) -> Iterator[Asset]:
    """Yield the index and the script that searches it."""
    script = resources.files("reports.render.site").joinpath(f"templates/{SCRIPT}")
    rows = (json.dumps(one.row, separators=(",", ":")) for one in entries(effects, found))
    parts = list(_parts(rows)) or [""]
    for number, part in enumerate(parts):
        text = f'"use strict";\nself.pmapIndex.push(\n{part}\n);\n'
        yield Asset(index_path(number), partial(str, text))
    yield Asset(SCRIPT, lambda: script.read_text(encoding="utf-8") + _files(len(parts)))


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
    results = effects.results
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
            f"JAX {jax}: what changed, and its known issues",
            version_path(jax),
            f"{jax} · jax {jax} · jaxlib {jax} · version · release · changelog",
            "Changes of behaviour, cost and documented claims, and its known issues.",
            0,
        )
    shown, still, reported = _programs_by_cause(results), _still(effects), _reported()
    seen = _seen(effects)
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
    yield from _removed()
    for message in found:
        yield Entry(
            message.sort.value,
            headline(message),
            error_path(message.slug),
            " · ".join((*message.types, *_signal_words(message))),
            shortened(" ".join(message.example.split()), _EXAMPLE_LENGTH),
            len(message.clauses),
        )
    for report in reports() if results.targets else ():
        yield Entry(
            "report",
            plain(report.title),
            f"{user_reports.PAGE}#{report.anchor}",
            f"{report.name} · {report.address}",
            "",
            0,
            "Users report",
        )
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
    expected = _expected(results)
    for clause in results.clauses.values():
        yield Entry(
            "program",
            plain(clause.title),
            clause_path(clause.clause),
            " · ".join((clause.clause, *reported.get(clause.clause, ()))),
            _names(clause.source),
            1,
            "Expected",
            expected.get(clause.clause, f"not run on JAX {newest}"),
        )


def _reported() -> dict[str, list[str]]:
    """Return, for each known issue and test, the words of the reports that it answers."""
    found: dict[str, list[str]] = {}
    for report in reports():
        for name in (*report.causes, *report.clauses):
            found.setdefault(name, []).append(report.words)
    return found


def _removed() -> Iterator[Entry]:
    """Names that JAX removed or warns of, by the errors that a program with them ends with."""
    for one in load_names().names:
        until = f"removed in JAX {one.gone}" if one.gone else "deprecated"
        yield Entry(
            "removed",
            f"{one.text}: {until}",
            removed.name_path(one),
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
        one.cause.cause: f"since {one.library} {edits[one.cause.cause].since}, with any JAX"
        if one.library
        else "; ".join(
            f"{implementation_words(name)}: JAX {ranges(there, some)}"
            for name in one.implementations
            if (some := one.shown_in(name))
        )
        for one in issues(effects)
    }


def _expected(results: Results) -> dict[str, str]:
    """Return for each clause whether the newest JAX does what is expected, by implementation."""
    number, newest = newest_index(results), newest_version(results)
    found: dict[str, str] = {}
    for id, marks in marks_of_clauses(results).items():
        by: dict[str, list[Mark]] = {}
        for (implementation, _), row in marks.items():
            by.setdefault(implementation, []).append(row[number])
        words = []
        for name in sorted(by, key=implementation_order):
            mark = together(by[name])
            if mark in _SAYS:
                words.append(f"{_SAYS[mark]} under {implementation_words(name)}")
        if words:
            found[id] = f"JAX {newest}: {', '.join(words)}"
    return found


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
    named = {"SIGSEGV": "segfault", "SIGABRT": "abort"}
    return ("crash", *(word for name, word in named.items() if name in message.title))


def _programs_by_cause(results: Results) -> Counter[str]:
    pairs = {(slug, key.clause) for key, one in results.outcomes.items() if (slug := cause_of(one))}
    named = {(one.cause, one.clause) for one in results.clauses.values() if one.cause}
    return Counter(slug for slug, _ in pairs | named)
