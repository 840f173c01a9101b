"""Undocumented behaviour is shown as like or unlike legacy pmap, and never as a fault of a
document.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element

import pytest
from records import Record, claim, deviation, target
from site_pages import Tags, loaded, text_in, tree
from two_sides import FAILS, FINE, FROM, TO, program, ran

from reports.render.site.build import render

TITLE = "Where the documents are silent"
SILENT = {
    "document": "silence",
    "document_title": TITLE,
    "heading": "",
    "claim_kind": "silence",
    "statement": "A thing stays as it was.",
}


def site(*claims: Record) -> dict[str, str]:
    """A site in which a program of each claim raises now, all of them for one why."""
    records = [target("0.8.0"), target("0.9.0"), *claims]
    for number, one in enumerate(claims):
        id = f"errors.{number}"
        records += [
            program(id, claim=one["slug"], source="x" * (number + 1)),
            ran(id, FROM, FINE),
            ran(id, TO, FAILS, verdict="known deviation", deviation=deviation(cause="one")),
        ]
    with TemporaryDirectory() as folder:
        return render(loaded(Path(folder), records))


def marks(page: Element, meaning: str) -> list[Element]:
    """Return the marks of a page that mean this, by their label or the text around them."""
    return [
        one
        for one in page.iter()
        if meaning in (one.get("aria-label"), one.get("title"))
        or (one.tag != "p" and text_in(one) == f"✗ {meaning}")
    ]


@pytest.fixture(scope="module")
def silent() -> dict[str, str]:
    return site(claim("pmap-silence.a", **SILENT))


@pytest.fixture(scope="module")
def spoken() -> dict[str, str]:
    return site(claim("migrate-pmap.a"))


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("a clause", "clauses/errors.0.html"),
        ("its document", "documents/{document}.html"),
        ("its section", "matrix/errors.html"),
    ],
)
def test_its_marks_are_of_legacy(
    name: str, page: str, silent: dict[str, str], spoken: dict[str, str]
) -> None:
    shown = tree(silent[page.format(document="silence")])
    assert "unlike legacy" in text_in(shown) or marks(shown, "unlike legacy"), name
    assert not marks(shown, "wrong")
    assert marks(tree(spoken[page.format(document="migrate-pmap")]), "wrong")


def test_it_is_quoted_as_no_statement_of_a_document(silent: dict[str, str]) -> None:
    text = Tags(silent["clauses/errors.0.html"]).text
    assert "No document" in text
    assert "in our words" not in text
    assert "“A thing" not in text
