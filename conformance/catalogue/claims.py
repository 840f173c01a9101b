"""The claims that the documents make, and what has changed in a document since it was reviewed.

A claim is one statement in our own words. It points at a heading of its document, and each heading
carries the hash of the text below it at the reviewed revision: a newer revision then shows which
claims need another look, without a copy of the document being kept here.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SILENCE = "silence"
KINDS = ("switch", "error", "fix", "performance", "semantics", SILENCE)

#: The format of a document that has no text: the silence of the others.
NO_TEXT = "none"
FORMATS = ("markdown", "text", NO_TEXT)

#: Headings that a document repeats under several parents, so that alone they name nothing.
REPEATED_HEADINGS = frozenset({"Example", "How this can happen", "How to fix"})
NESTING = " > "

#: A line of a saved page that ends in a permalink and is longer than this is a figure's caption.
MAX_HEADING_CHARACTERS = 100

HASH_DIGITS = 16

CLAIMS_FILE = Path(__file__).with_name("claims.toml")

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_REF = re.compile(r"[A-Z][1-9][0-9]*[a-z]?")
_HASH = re.compile(rf"sha256:[0-9a-f]{{{HASH_DIGITS}}}")
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})(?P<rest>.*)")
_MARKDOWN_HEADING = re.compile(r"(?P<hashes>#{1,6})\s+(?P<heading>.*?)\s*#*\s*")


@dataclass(frozen=True, slots=True)
class Document:
    """One source document at the revision that was reviewed."""

    slug: str
    title: str
    revision: str
    format: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a document, in our own words; true or false is for the clauses to find."""

    slug: str
    ref: str
    document: str
    heading: str
    statement: str
    kind: str


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that the documents claim, by slug, and the hashes of the reviewed headings."""

    documents: Mapping[str, Document]
    headings: Mapping[str, Mapping[str, str]]
    claims: Mapping[str, Claim]

    def citing(self, document: str, heading: str) -> tuple[str, ...]:
        """The slugs of the claims that rest on one heading."""
        return tuple(
            claim.slug
            for claim in self.claims.values()
            if (claim.document, claim.heading) == (document, heading)
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """One heading that is not as it was when its document was reviewed."""

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
    """Read and check a claims file: a mistake in it would silently hide a claim from the report."""
    source = path or CLAIMS_FILE
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source.name} is not valid TOML: {error}. Correct the file.") from error
    _check_keys(data, ("documents", "headings", "claims"), source.name)
    documents = {
        slug: _document(slug, table)
        for slug, table in _table(data["documents"], "[documents]").items()
    }
    headings = _headings(_table(data["headings"], "[headings]"), documents)
    claims = {
        slug: _claim(slug, table, documents, headings)
        for slug, table in _table(data["claims"], "[claims]").items()
    }
    return Claims(documents=documents, headings=headings, claims=claims)


def heading_texts(text: str, format: str) -> dict[str, str]:
    """Split a document into the text below each heading, up to the next heading of any level.

    A heading that a document repeats is keyed as "Parent > Heading". Text before the first heading
    belongs to none, and is left out.
    """
    if format == "markdown":
        sections = list(_markdown_sections(text))
    elif format == "text":
        sections = list(_text_sections(text))
    else:
        raise ValueError(
            f"a document of format {format!r} has no headings to read; "
            "give the text of a document whose format is 'markdown' or 'text'"
        )
    texts: dict[str, str] = {}
    for key, body in _keyed(sections):
        # The same heading twice under one parent: what stands below either is what was reviewed.
        texts[key] = _normalised(f"{texts.get(key, '')} {body}")
    return texts


def hash_of(text: str) -> str:
    """The hash of a heading's text, equal for the copies of one text that differ in form only.

    Pages saved by different tools differ in white space, quotation marks and box drawings, and some
    copies were decoded wrongly: so only the ASCII characters that are seen are counted.
    """
    seen = "".join(character for character in text if "!" <= character <= "~")
    return "sha256:" + hashlib.sha256(seen.encode("ascii")).hexdigest()[:HASH_DIGITS]


def drift(claims: Claims, documents: Mapping[str, str]) -> list[Drift]:
    """The headings that changed, vanished or are new in the texts given, by document slug."""
    found: list[Drift] = []
    for slug, text in documents.items():
        if slug not in claims.documents:
            raise ValueError(
                f"unknown document {slug!r}; give one of: {', '.join(claims.documents)}"
            )
        texts = heading_texts(text, claims.documents[slug].format)
        now = {heading: hash_of(body) for heading, body in texts.items()}
        found += _document_drift(claims, slug, now)
    return found


def _document_drift(claims: Claims, slug: str, now: Mapping[str, str]) -> Iterator[Drift]:
    reviewed = claims.headings.get(slug, {})
    for heading in [*reviewed, *(heading for heading in now if heading not in reviewed)]:
        if reviewed.get(heading) == now.get(heading):
            continue
        change = "changed" if heading in reviewed else "new"
        if heading not in now:
            change = "vanished"
        yield Drift(slug, heading, change, now.get(heading, ""), claims.citing(slug, heading))


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading as found; a deeper one has a higher level."""

    level: int
    heading: str
    body: str


def _markdown_sections(text: str) -> Iterator[_Section]:
    """Headings are the '#' lines outside code fences; underlined headings are not recognised."""
    fence = ""
    found: list[tuple[int, str]] = []
    bodies: list[list[str]] = []
    for line in text.splitlines():
        mark = _FENCE.fullmatch(line)
        if mark and not fence:
            fence = mark["fence"]
        elif mark and mark["fence"].startswith(fence) and not mark["rest"].strip():
            fence = ""
        elif not fence and (heading := _MARKDOWN_HEADING.fullmatch(line)):
            found.append((len(heading["hashes"]), _normalised(heading["heading"].replace("`", ""))))
            bodies.append([])
            continue
        if bodies:
            bodies[-1].append(line)
    for (level, name), body in zip(found, bodies, strict=True):
        yield _Section(level, name, "\n".join(body))


def _text_sections(text: str) -> Iterator[_Section]:
    """Headings are the lines of a saved page that end in the permalink '#'.

    Captions of figures end in it too and are longer; a comment of a code sample begins with it. The
    page has lost its levels: only a repeated heading counts as deeper than the others.
    """
    found: list[str] = []
    bodies: list[list[str]] = []
    for line in text.splitlines():
        if _is_text_heading(line):
            found.append(_normalised(line.rstrip().removesuffix("#")))
            bodies.append([])
        elif bodies:
            bodies[-1].append(line)
    repeated = _repeated(found)
    for name, body in zip(found, bodies, strict=True):
        yield _Section(2 if name in repeated else 1, name, "\n".join(body))


def _is_text_heading(line: str) -> bool:
    line = line.strip()
    return line.endswith("#") and not line.startswith("#") and len(line) <= MAX_HEADING_CHARACTERS


def _keyed(sections: list[_Section]) -> Iterator[tuple[str, str]]:
    repeated = _repeated(section.heading for section in sections)
    parents: list[tuple[int, str]] = []
    for section in sections:
        while parents and parents[-1][0] >= section.level:
            parents.pop()
        key = section.heading
        if section.heading in repeated and parents:
            key = parents[-1][1] + NESTING + key
        parents.append((section.level, key))
        yield key, section.body


def _repeated(headings: Iterable[str]) -> frozenset[str]:
    # The well-known names count even where a revision has one of them left, so that its key stays.
    counts = Counter(headings)
    return REPEATED_HEADINGS | {heading for heading, count in counts.items() if count > 1}


def _normalised(text: str) -> str:
    return " ".join(text.split())


def _document(slug: str, table: object) -> Document:
    where = f"document {slug!r}"
    if not _SLUG.fullmatch(slug):
        raise ValueError(f"{where}: the slug is not in kebab-case; use a-z, 0-9 and single hyphens")
    fields = _fields(table, ("title", "revision", "format"), where)
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
    fields = _fields(
        table, ("ref", "document", "heading", "statement", "kind"), where, ("heading",)
    )
    claim = Claim(slug=slug, **fields)
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
    table: object, names: tuple[str, ...], where: str, may_be_empty: tuple[str, ...] = ()
) -> dict[str, str]:
    fields = _table(table, where)
    _check_keys(fields, names, where)
    for name in names:
        value = fields[name]
        if not isinstance(value, str) or len(value.splitlines()) > 1 or value != value.strip():
            raise ValueError(
                f"{where}: {name} is {value!r}; write one line of text without space around it"
            )
        if not value and name not in may_be_empty:
            raise ValueError(f"{where}: {name} is empty; fill it in")
    return fields


def _check_keys(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    expected = ", ".join(names)
    if unknown := [name for name in table if name not in names]:
        raise ValueError(
            f"{where}: unknown key {', '.join(unknown)}; remove it, or correct it to one of: "
            f"{expected}"
        )
    if missing := [name for name in names if name not in table]:
        raise ValueError(f"{where}: {', '.join(missing)} is missing; it needs all of: {expected}")


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {value!r} is not a table; write one with its keys")
    return value
