"""The position of a claim in its document, over all revisions, and its address."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from conformance.catalogue.claims import Claim, Claims, Document, load_claims
from conformance.catalogue.outline import Places, anchor_of, outline

URL = "https://example.org/guide.html"
NEW_URL = "https://example.org/later/guide.html"


def claims_of(*, old: tuple[str, ...], new: tuple[str, ...]) -> Claims:
    """A document `old` that `new` follows; a heading's text is the same in both."""
    return Claims(
        documents={
            "old": Document("old", "Guide", "first", "markdown", url=URL),
            "new": Document("new", "Guide", "second", "markdown", follows="old", url=NEW_URL),
        },
        headings={
            "old": {heading: f"hash of {heading.lower()}" for heading in old},
            "new": {heading: f"hash of {heading.lower()}" for heading in new},
        },
        claims={},
    )


def claim(document: str, heading: str) -> Claim:
    return Claim(f"{document}.a", "A1", document, heading, "It is so.", "semantics")


@pytest.mark.parametrize(
    ("name", "old", "new", "whole"),
    [
        ("equal", ("A", "B"), ("A", "B"), ("A", "B")),
        ("added", ("A", "B"), ("A", "X", "B"), ("A", "X", "B")),
        ("dropped in the middle", ("A", "X", "B"), ("A", "B"), ("A", "X", "B")),
        ("dropped at the end", ("A", "B", "X"), ("A", "B"), ("A", "B", "X")),
        ("another order", ("A", "B"), ("B", "A"), ("B", "A")),
        ("all new", ("A", "B"), ("C", "D"), ("C", "D", "A", "B")),
        ("other quotes", ('The "way"', "B"), ("The “way”", "B"), ("The “way”", "B")),
    ],
)
def test_the_newest_gives_the_order(
    name: str, old: tuple[str, ...], new: tuple[str, ...], whole: tuple[str, ...]
) -> None:
    assert outline(claims_of(old=old, new=new), "old") == whole, name


def test_a_claim_that_still_stands() -> None:
    place = Places(claims_of(old=("A", "B"), new=("X", "A", "B"))).place_of(claim("old", "B"))
    assert (place.document, place.order, place.current) == ("old", 2, True)
    assert place.revisions == ("first", "second")
    assert place.url == f"{NEW_URL}#b"


def test_a_claim_that_was_dropped_has_no_anchor() -> None:
    place = Places(claims_of(old=("A", "B"), new=("A",))).place_of(claim("old", "B"))
    assert (place.current, place.revisions, place.url) == (False, ("first",), URL)


def test_a_claim_of_the_later_revision_is_of_the_same_document() -> None:
    place = Places(claims_of(old=("A",), new=("A", "B"))).place_of(claim("new", "B"))
    assert (place.document, place.order, place.revisions) == ("old", 1, ("second",))


def test_a_claim_of_a_page_as_a_whole_has_its_address_without_an_anchor() -> None:
    place = Places(claims_of(old=("A",), new=("A",))).place_of(claim("old", ""))
    assert (place.order, place.current, place.url) == (0, False, URL)
    place = Places(claims_of(old=("A",), new=("A",))).place_of(claim("new", ""))
    assert (place.current, place.url) == (True, NEW_URL)


def test_a_document_without_an_address_gives_its_claims_none() -> None:
    found = claims_of(old=("A",), new=("A",))
    without = {slug: replace(one, url="") for slug, one in found.documents.items()}
    assert Places(replace(found, documents=without)).place_of(claim("old", "A")).url == ""


def test_a_heading_that_no_revision_has_is_refused() -> None:
    with pytest.raises(ValueError, match="not in list"):
        Places(claims_of(old=("A",), new=("A",))).place_of(claim("old", "B"))


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What's going on?", "what-s-going-on"),
        ("1. Automatic parallelism via jit", "automatic-parallelism-via-jit"),
        ("ValueError: Received incompatible devices ... > Example", None),
        ("Help! Fix me now!", "help-fix-me-now"),
        ("A naïve déjà vu", "a-naive-deja-vu"),
    ],
)
def test_anchors(heading: str, anchor: str | None) -> None:
    assert anchor_of(heading) == (anchor or "valueerror-received-incompatible-devices")


def test_every_claim_of_the_catalogue_has_a_place() -> None:
    claims = load_claims()
    for one in claims.claims.values():
        place = Places(claims).place_of(one)
        assert not claims.documents[place.document].follows
        assert bool(place.url) == bool(one.heading), one.slug
        assert place.current == (not one.heading or "#" in place.url), one.slug
        assert not place.url or urlsplit(place.url).scheme == "https"
