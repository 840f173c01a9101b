"""Undocumented behaviour is shown as like or unlike legacy pmap, and never as a fault of a
document.
"""

from __future__ import annotations

import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element

from parameterized import parameterized
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
        if one.get("aria-label") == meaning or (one.tag != "p" and text_in(one) == f"✗ {meaning}")
    ]


class Silences(unittest.TestCase):
    silent: dict[str, str]
    spoken: dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.silent = site(claim("pmap-silence.a", **SILENT))
        cls.spoken = site(claim("migrate-pmap.a"))

    @parameterized.expand(
        [
            ("a clause", "clauses/errors.0.html"),
            ("its document", "documents/{document}.html"),
            ("its section", "matrix/errors.html"),
        ]
    )
    def test_its_marks_are_of_legacy(self, name: str, page: str) -> None:
        silent = tree(self.silent[page.format(document="silence")])
        spoken = tree(self.spoken[page.format(document="migrate-pmap")])
        assert "unlike legacy" in text_in(silent) or marks(silent, "unlike legacy"), name
        assert not marks(silent, "wrong")
        assert marks(spoken, "wrong")

    def test_it_is_quoted_as_no_statement_of_a_document(self) -> None:
        text = Tags(self.silent["clauses/errors.0.html"]).text
        assert "No document" in text
        assert "in our words" not in text
        assert "“A thing" not in text
