"""Addresses within the site, made of ids that come from files which anyone may hand in.

`safe_name` makes of each id one harmless path segment; nothing else may become part of an address.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from conformance.model.records import Claim
from reports.reading.outcomes import CellKey
from reports.reading.results import Results

_SAFE = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NAME_LENGTH = 80
_DIGEST_LENGTH = 12
_NAMES_KEPT = 16_384  # a page names the same few thousand cells and clauses again and again
_WORDS = {"legacy_pmap": "legacy pmap", "new_pmap": "new pmap"}


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead somewhere; `href` is relative to the site's top, empty where nothing is."""

    text: str
    href: str


@lru_cache(_NAMES_KEPT)
def safe_name(text: str) -> str:
    """A file name or anchor for an id: itself where it is harmless, else cleaned with a digest.

    Different ids never share a name, also where a file system ignores case.
    """
    if _SAFE.fullmatch(text) and len(text) <= _NAME_LENGTH:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    cleaned = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_NAME_LENGTH].strip("-")
    # The "~" is in no harmless id, so that none can be made to collide with a cleaned one.
    return f"{cleaned}~{digest}"


def clause_path(clause: str) -> str:
    """The page of a clause: the evidence."""
    return f"clauses/{safe_name(clause)}.html"


def cause_path(cause: str) -> str:
    """The page of a cause."""
    return f"causes/{safe_name(cause)}.html"


def document_path(document: str) -> str:
    """The page of a source document with our statements beside its headings."""
    return f"documents/{safe_name(document)}.html"


def claim_path(claim: Claim) -> str:
    """The row of a claim on its document's page, which is one for all revisions of it."""
    return f"{document_path(claim.outline or claim.document)}#{safe_name(claim.slug)}"


def checks_path(claim: str) -> str:
    """The page of a claim whose checks are too many for its document's page."""
    return f"claims/{safe_name(claim)}.html"


def version_path(jax: str) -> str:
    """The page of a version."""
    return f"versions/{safe_name(jax)}.html"


def matrix_path(section: str, part: int = 0) -> str:
    """The matrix of a section, or a part of it."""
    return f"matrix/{safe_name(section)}{f'~{part}' if part else ''}.html"


def cell_anchor(implementation: str, topology: str) -> str:
    """Where the cells of an implementation on a topology stand on their clause's page."""
    return safe_name(f"c-{implementation}.{topology}")


def cell_path(key: CellKey) -> str:
    """A cell on its clause's page."""
    return f"{clause_path(key.clause)}#{cell_anchor(key.implementation, key.topology)}"


def clause_link(results: Results, clause: str) -> Link:
    """The id of a clause, and its page where it has one."""
    return Link(clause, clause_path(clause) if clause in results.clauses else "")


def cause_link(results: Results, cause: str) -> Link:
    """The title of a cause, and its page where it has one."""
    found = results.causes.get(cause)
    return Link(found.title, cause_path(cause)) if found else Link(cause, "")


def implementation_words(implementation: str) -> str:
    """An implementation as a reader says it."""
    return _WORDS.get(implementation, implementation)
