"""The position of a claim in its document: the headings in reading order, and their addresses.

A document has several revisions, and a heading may be in some of them only: the outline joins them,
so that a claim keeps its position when a later revision drops its heading.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.catalogue.claims import Claim, Claims
from conformance.catalogue.documents import NESTING, words_of


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a claim; `document` is the first revision, `revisions` are those that make
    the claim.
    """

    document: str
    revisions: tuple[str, ...]
    current: bool
    order: int
    url: str


class Places:
    """The positions of the claims of `claims`; the headings of a document are joined once."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._words: dict[str, list[str]] = {}  # of the joined headings, by the first revision

    def place_of(self, claim: Claim) -> Place:
        """Return the position of a claim; ValueError if no revision has its heading."""
        claims, first = self._claims, _first(self._claims, claim.document)
        revisions = (first, *claims.later(first))
        stands_in = claims.stands_in(claim)
        current = revisions[-1] in stands_in
        if first not in self._words:
            self._words[first] = [words_of(heading) for heading in outline(claims, first)]
        return Place(
            document=first,
            revisions=tuple(claims.documents[slug].revision for slug in stands_in),
            current=current,
            order=self._words[first].index(words_of(claim.heading)) if claim.heading else 0,
            url=_url(claims, revisions[-1] if current else claim.document, claim.heading, current),
        )


def outline(claims: Claims, document: str) -> tuple[str, ...]:
    """Return the headings of all revisions of a document from `document` on, as one list.

    The newest revision gives the order. A heading of an earlier one only comes after its
    predecessor there, or at the end.
    """
    revisions = (document, *claims.later(document))
    found: list[str] = []
    for slug in reversed(revisions):
        found = _joined(found, claims.headings.get(slug, {}))
    return tuple(found)


def anchor_of(heading: str) -> str:
    """Return the anchor that the documents' site gives a heading; for a repeated one, its
    parent's.
    """
    plain = unicodedata.normalize("NFKD", heading.split(NESTING)[0].lower())
    words = re.sub(r"[^a-z0-9]+", "-", plain.encode("ascii", "ignore").decode())
    return re.sub(r"^[-0-9]+|-+$", "", words)


def _joined(order: Iterable[str], more: Iterable[str]) -> list[str]:
    found = list(order)
    at = len(found)
    for heading in more:
        place = next((i for i, one in enumerate(found) if words_of(one) == words_of(heading)), None)
        if place is None:
            found.insert(at, heading)
            place = at
        at = place + 1
    return found


def _first(claims: Claims, document: str) -> str:
    while before := claims.documents[document].follows:
        document = before
    return document


def _url(claims: Claims, document: str, heading: str, current: bool) -> str:
    """Return the heading's address; the page alone if the newest revision lacks the statement."""
    url = claims.documents[document].url
    return f"{url}#{anchor_of(heading)}" if url and heading and current else url
