"""The index of the search, as a script: a page opened from a disk may load nothing else.

An entry is a list: sort, title, address, what it is searched for by, a sentence, and how many
programs stand behind it. `find.js` ranks them; it is loaded with the box, the index with the first
key that is pressed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from reports.comparing.changes import cause_of
from reports.errors.messages import Message
from reports.reading.results import Results
from reports.site.errors import error_path, headline
from reports.site.names import cause_path, claim_path, clause_path
from reports.site.page import Asset
from reports.site.subjects import clauses_of, subjects
from reports.site.text import plain, shortened

INDEX, SCRIPT = "search.js", "find.js"
_EXAMPLE_LENGTH = 400
_SENTENCE_LENGTH = 400


class Entry(NamedTuple):
    """One thing that can be found; `tags` are what people type, `weight` breaks ties."""

    sort: str
    title: str
    href: str
    tags: str
    text: str
    weight: int


def pages(results: Results, found: Sequence[Message]) -> Iterator[Asset]:
    """The index and the script that searches it."""
    rows = ",\n".join(json.dumps(one, separators=(",", ":")) for one in entries(results, found))
    yield Asset(INDEX, f'"use strict";\nself.pmapIndex = [\n{rows}\n];\n')
    script = resources.files("reports.site").joinpath(f"templates/{SCRIPT}")
    yield Asset(SCRIPT, script.read_text(encoding="utf-8"))


def entries(results: Results, found: Sequence[Message]) -> Iterator[Entry]:
    """Subjects, causes, messages, statements and programs."""
    for one in subjects(results):
        yield Entry(
            "subject", one.title, one.path, " · ".join(one.words), "", len(clauses_of(results, one))
        )
    shown = _programs_by_cause(results)
    for cause in results.causes.values():
        yield Entry(
            "cause",
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
            " · ".join(message.types),
            shortened(" ".join(message.example.split()), _EXAMPLE_LENGTH),
            len(message.clauses),
        )
    clauses = results.clauses_of_claims()
    for claim in results.claims.values():
        yield Entry(
            "statement",
            plain(claim.statement),
            claim_path(claim.document, claim.slug),
            claim.slug,
            f"{claim.document_title}: {claim.heading}",
            len(clauses[claim.slug]),
        )
    for clause in results.clauses.values():
        yield Entry(
            "program", plain(clause.title), clause_path(clause.clause), clause.clause, "", 1
        )


def _programs_by_cause(results: Results) -> Counter[str]:
    pairs = {(slug, key.clause) for key, one in results.outcomes.items() if (slug := cause_of(one))}
    named = {(one.cause, one.clause) for one in results.clauses.values() if one.cause}
    return Counter(slug for slug, _ in pairs | named)
