"""The claims of the documents, and changes of the documents since they were reviewed.

A claim is one statement in our own words. It belongs to a heading of its document, and each heading
has the hash of the text below it at the reviewed revision: that shows which claims a newer revision
affects, without a copy of the document here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.catalogue.documents import (
    HASH_DIGITS,
    MARKDOWN,
    TEXT,
    format_of,
    hash_of,
    heading_texts,
    words_of,
)
from conformance.model.tables import check_keys, load_toml

SILENCE = "silence"
KINDS = ("switch", "error", "fix", "performance", "semantics", SILENCE)

#: The format of a document that has no text: the silence of the others.
NO_TEXT = "none"
FORMATS = (MARKDOWN, TEXT, NO_TEXT)

CLAIMS_FILE = Path(__file__).with_name("claims.toml")

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_REF = re.compile(r"[A-Z][1-9][0-9]*[a-z]?")
_HASH = re.compile(rf"sha256:[0-9a-f]{{{HASH_DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Document:
    """One source document at one revision; `follows` is the slug of the previous revision.

    `url` is the address of its newest revision.
    """

    slug: str
    title: str
    revision: str
    format: str
    follows: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a document, in our own words; the clauses find whether it is true.

    `document` is the first revision that contains it. `revisions`, if given, are those in which a
    reader found it: needed if a later one words its section otherwise.
    """

    slug: str
    ref: str
    document: str
    heading: str
    statement: str
    kind: str
    revisions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that the documents claim, by slug, and the hashes of the reviewed headings."""

    documents: Mapping[str, Document]
    headings: Mapping[str, Mapping[str, str]]
    claims: Mapping[str, Claim]

    def citing(self, document: str, heading: str) -> tuple[str, ...]:
        """Return the slugs of the claims of one heading."""
        return tuple(
            claim.slug
            for claim in self.claims.values()
            if document in self.stands_in(claim) and words_of(claim.heading) == words_of(heading)
        )

    def later(self, document: str) -> tuple[str, ...]:
        """Return the slugs of a document's later revisions, in order."""
        found = [document]
        for slug, one in self.documents.items():
            if one.follows == found[-1]:
                found.append(slug)
        return tuple(found[1:])

    def stands_in(self, claim: Claim) -> tuple[str, ...]:
        """Return the revisions that make this statement: as the claim says, else by its section's
        text.

        A later revision whose section is unchanged makes it as well.
        """
        if claim.revisions or not claim.heading:
            return claim.revisions or (claim.document,)
        reviewed = self._hash_in(claim.document, claim.heading)
        same = (
            s for s in self.later(claim.document) if self._hash_in(s, claim.heading) == reviewed
        )
        return (claim.document, *same)

    def undecided(self, claim: Claim) -> tuple[str, ...]:
        """Return the later revisions whose section changed, if the claim does not name its
        revisions.
        """
        if claim.revisions or not claim.heading:
            return ()
        reviewed = self._hash_in(claim.document, claim.heading)
        later = self.later(claim.document)
        return tuple(s for s in later if self._hash_in(s, claim.heading) not in ("", reviewed))

    def _hash_in(self, document: str, heading: str) -> str:
        headings = self.headings.get(document, {})
        return next((h for k, h in headings.items() if words_of(k) == words_of(heading)), "")


@dataclass(frozen=True, slots=True)
class Drift:
    """One heading that has changed since its document was reviewed."""

    document: str
    heading: str
    change: str
    hash_now: str
    claims: tuple[str, ...]

    def __str__(self) -> str:
        now = f", now {self.hash_now}" if self.hash_now else ""
        cited = ", ".join(self.claims) or "none"
        return f"{self.change}: {self.document}: {self.heading!r}{now}; claims: {cited}"


def load_claims(path: Path | None = None) -> Claims:
    """Read and validate a claims file, because an error in it would hide a claim from the report.

    `path` is by default the catalogue's. ValueError names the claim or document that is invalid.
    """
    source = path or CLAIMS_FILE
    data = load_toml(source)
    all_of = ("documents", "headings", "claims")
    check_keys(data, all_of, all_of, source.name)
    documents = {
        slug: _document(slug, table)
        for slug, table in _table(data["documents"], "[documents]").items()
    }
    headings = _headings(_table(data["headings"], "[headings]"), documents)
    claims = {
        slug: _claim(slug, table, documents, headings)
        for slug, table in _table(data["claims"], "[claims]").items()
    }
    for slug, one in documents.items():
        if one.follows and one.follows not in documents:
            raise ValueError(f"document {slug!r}: it follows {one.follows!r}, which is no document")
    return Claims(documents=documents, headings=headings, claims=claims)


def drift(claims: Claims, documents: Mapping[str, str]) -> list[Drift]:
    """Return the headings that changed, disappeared or are new in the given texts, by document
    slug.

    A text may have another format than the reviewed one: headings are compared by their words.
    ValueError if a slug is of no document.
    """
    found: list[Drift] = []
    for slug, text in documents.items():
        if slug not in claims.documents:
            raise ValueError(
                f"unknown document {slug!r}; give one of: {', '.join(claims.documents)}"
            )
        format = claims.documents[slug].format
        texts = heading_texts(text, format if format == NO_TEXT else format_of(text))
        found += _document_drift(claims, slug, {k: hash_of(body) for k, body in texts.items()})
    return found


def _document_drift(claims: Claims, slug: str, now: Mapping[str, str]) -> Iterator[Drift]:
    reviewed = claims.headings.get(slug, {})
    found = {words_of(heading): hash for heading, hash in now.items()}
    for heading, hash in reviewed.items():
        hash_now = found.get(words_of(heading), "")
        if hash_now != hash:
            change = "changed" if hash_now else "gone"
            yield Drift(slug, heading, change, hash_now, claims.citing(slug, heading))
    known = {words_of(heading) for heading in reviewed}
    for heading, hash in now.items():
        if words_of(heading) not in known:
            yield Drift(slug, heading, "new", hash, ())


def _document(slug: str, table: object) -> Document:
    where = f"document {slug!r}"
    if not _SLUG.fullmatch(slug):
        raise ValueError(f"{where}: the slug is not in kebab-case; use a-z, 0-9 and single hyphens")
    fields = _fields(table, ("title", "revision", "format"), where, optional=("follows", "url"))
    if fields["format"] not in FORMATS:
        raise ValueError(
            f"{where}: unknown format {fields['format']!r}; use one of: {', '.join(FORMATS)}"
        )
    return Document(slug=slug, **fields)


def _headings(
    tables: Mapping[str, Any], documents: Mapping[str, Document]
) -> dict[str, dict[str, str]]:
    headings: dict[str, dict[str, str]] = {}
    for slug, table in tables.items():
        where = f"headings of {slug!r}"
        if slug not in documents or documents[slug].format == NO_TEXT:
            raise ValueError(f"{where}: there is no such document with a text; add it or drop them")
        headings[slug] = dict(_table(table, where))
        for heading, value in headings[slug].items():
            if not isinstance(value, str) or not _HASH.fullmatch(value):
                raise ValueError(
                    f"{where}: {heading!r} has {value!r} for a hash; "
                    f"write 'sha256:' and {HASH_DIGITS} hexadecimal digits, as hash_of returns them"
                )
    return headings


def _claim(
    slug: str,
    table: object,
    documents: Mapping[str, Document],
    headings: Mapping[str, Mapping[str, str]],
) -> Claim:
    where = f"claim {slug!r}"
    table = dict(_table(table, where))
    revisions = table.pop("revisions", [])
    fields = _fields(
        table, ("ref", "document", "heading", "statement", "kind"), where, ("heading",)
    )
    claim = Claim(slug=slug, **fields, revisions=tuple(revisions))
    if claim.document not in documents:
        raise ValueError(
            f"{where}: unknown document {claim.document!r}; use one of: {', '.join(documents)}"
        )
    if claim.kind not in KINDS:
        raise ValueError(f"{where}: unknown kind {claim.kind!r}; use one of: {', '.join(KINDS)}")
    prefix, _, words = slug.partition(".")
    if prefix != claim.document or not _SLUG.fullmatch(words):
        raise ValueError(
            f"{where}: a slug is its document's slug, a dot and words in kebab-case; "
            f"write '{claim.document}.<words>'"
        )
    if not _REF.fullmatch(claim.ref):
        raise ValueError(f"{where}: {claim.ref!r} is not a ref; write one such as 'B1' or 'B1a'")
    _check_heading(claim, documents[claim.document], headings)
    unknown = [one for one in revisions if one not in documents]
    if unknown or (revisions and revisions[0] != claim.document):
        raise ValueError(
            f"{where}: revisions is {revisions!r}; write slugs of documents, "
            f"the claim's own, {claim.document!r}, first"
        )
    return claim


def _check_heading(
    claim: Claim, document: Document, headings: Mapping[str, Mapping[str, str]]
) -> None:
    where = f"claim {claim.slug!r}"
    if (claim.kind == SILENCE) != (document.format == NO_TEXT):
        raise ValueError(
            f"{where}: kind {claim.kind!r} in {document.slug!r}, of format {document.format!r}; a "
            f"{SILENCE} belongs to a document of format {NO_TEXT!r}, and nothing else does"
        )
    if claim.kind == SILENCE:
        if claim.heading:
            raise ValueError(f'{where}: a silence has no heading; write heading = ""')
    elif claim.heading not in headings.get(document.slug, {}):
        raise ValueError(
            f"{where}: heading {claim.heading!r} is not in [headings.{document.slug!r}]; "
            "correct it, or add it there with its hash"
        )


def _fields(
    table: object,
    names: tuple[str, ...],
    where: str,
    may_be_empty: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
) -> dict[str, str]:
    fields = _table(table, where)
    check_keys(fields, (*names, *optional), names, where)
    for name, value in fields.items():
        if not isinstance(value, str) or len(value.splitlines()) > 1 or value != value.strip():
            raise ValueError(
                f"{where}: {name} is {value!r}; write one line of text without space around it"
            )
        if not value and name not in may_be_empty:
            raise ValueError(f"{where}: {name} is empty; fill it in")
    return fields


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {value!r} is not a table; write one with its keys")
    return value
