"""Addresses within the site, made of ids from files that anyone may supply.

`safe_name` makes a harmless path segment of each id; nothing else may become part of an address.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from conformance.model.records import Claim
from reports.store.outcomes import CellKey
from reports.store.results import Results

_SAFE = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NAME_LENGTH = 80
_DIGEST_LENGTH = 12
_NAMES_KEPT = 16_384  # a page names the same few thousand cells and clauses again and again
_WORDS = {"legacy_pmap": "legacy pmap", "new_pmap": "new pmap", "jax": "plain JAX"}


@dataclass(frozen=True, slots=True)
class Link:
    """Text with a link; `href` is relative to the site's top, or empty."""

    text: str
    href: str


@lru_cache(_NAMES_KEPT)
def safe_name(text: str) -> str:
    """Return a file name or anchor for an id: itself if harmless, else cleaned and with a digest.

    Different ids never share a name, not even where a file system ignores case.
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
    """Return the row of a claim on its document's page, which covers all revisions."""
    return f"{document_path(claim.outline or claim.document)}#{safe_name(claim.slug)}"


def checks_path(claim: str) -> str:
    """Return the page of a claim whose tests do not fit on its document's page."""
    return f"claims/{safe_name(claim)}.html"


def version_path(jax: str) -> str:
    """The page of a version."""
    return f"versions/{safe_name(jax)}.html"


def matrix_path(section: str, part: int = 0) -> str:
    """The matrix of a section, or a part of it."""
    return f"matrix/{safe_name(section)}{f'~{part}' if part else ''}.html"


def cell_anchor(implementation: str, topology: str) -> str:
    """Return the anchor of the cells of an implementation on a topology."""
    return safe_name(f"c-{implementation}.{topology}")


def cell_path(key: CellKey) -> str:
    """A cell on its clause's page."""
    return f"{clause_path(key.clause)}#{cell_anchor(key.implementation, key.topology)}"


def clause_link(results: Results, clause: str) -> Link:
    """Return the id of a clause, linked to its page if it has one."""
    return Link(clause, clause_path(clause) if clause in results.clauses else "")


def cause_link(results: Results, cause: str) -> Link:
    """Return the title of a known issue, linked to its page if it has one."""
    found = results.causes.get(cause)
    return Link(found.title, cause_path(cause)) if found else Link(cause, "")


def implementation_words(implementation: str) -> str:
    """Return an implementation's name for readers."""
    return _WORDS.get(implementation, implementation)


# How a reader calls a section whose name is another.
_SECTIONS = {
    "rank": "ndim changes",
    "idioms": "common patterns",
    "drop_in": "replacements",
    "switches": "configuration flags",
    "silences": "undocumented behaviour",
    "multi_controller": "several processes",
    "indexing": "indexing outputs",
    "rewriting": "rewriting as shard_map",
}


def section_words(section: str) -> str:
    """Return what a reader calls a section of the catalogue."""
    return _SECTIONS.get(section, section.replace("_", " "))
