"""The claims: the file that is published, what it refuses, and how drift of a document is found.

A claim that goes missing leaves a gap that no report can show, so the subjects that the file must
cover are written out here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.__main__ import EXIT_DRIFT, EXIT_OK, EXIT_USAGE, main
from conformance.catalogue.claims import (
    CLAIMS_FILE,
    MAX_HEADING_CHARACTERS,
    SILENCE,
    Claims,
    drift,
    hash_of,
    heading_texts,
    load_claims,
)

SUBJECTS = {
    "A": 8,
    "B": 5,
    "C": 12,
    "D": 5,
    "E": 6,
    "F": 8,
    "G": 6,
    "H": 8,
    "I": 16,
    "J": 8,
    "K": 13,
}
FIXES = ("B1a", "B1b", "B1c", "B1d", "B2a", "B2b", "B2c", "B3a", "B3b", "B3c")
REFS = [
    *(f"{letter}{number}" for letter, last in SUBJECTS.items() for number in range(1, last + 1)),
    *FIXES,
]

FIRST_CLAIMS = {
    "migrate-pmap.incompatible-devices": "B1",
    "migrate-pmap.fix-device-put-named-sharding": "B1a",
    "migrate-pmap.fix-redefine-in-axes": "B1b",
    "migrate-pmap.fix-redefine-devices": "B1c",
    "migrate-pmap.fix-redefine-backend": "B1d",
    "migrate-pmap.context-mesh": "B2",
    "migrate-pmap.fix-one-shard-map-2d": "B2a",
    "migrate-pmap.fix-nested-shard-map": "B2b",
    "migrate-pmap.fix-smap": "B2c",
    "migrate-pmap.copy-arrays": "B3",
    "migrate-pmap.fix-addressable-shards": "B3a",
    "migrate-pmap.fix-device-put-global": "B3b",
    "migrate-pmap-later.fix-static-range": "B3c",
    "migrate-pmap.lowered-multi-process": "B4",
    "migrate-pmap.fix-host-local-global": "B4",
    "migrate-pmap.core-halted": "B5",
    "migrate-pmap.fix-sync-global-devices": "B5",
}

GUIDE = """\
---
orphan: true
---

# Guide to `maps`

First words.

## `ValueError: no map`

### Example

```python
# not a heading
x = 1
```

### How to fix

Take a map.

## `ValueError: no mesh`

### Example

    ValueError: no mesh

### How to fix

Take   a
mesh.
"""

CAPTION = (
    "A figure whose caption is told from a heading by its length: " + "more words " * 5 + "follow#"
)

PAGE = f"""\
Guide to maps#
First words.
{CAPTION}
# In file example.py...
ValueError: no map#
Example#
ValueError: no map
How to fix#
Take a map.
ValueError: no mesh#
Example#
How to fix#
Take a
mesh.
"""

VALID = f"""\
[documents.guide]
title = "Guide to maps"
revision = "1"
format = "markdown"

[documents.quiet]
title = "What the guide does not say"
revision = "none"
format = "none"

[headings.guide]
"Guide to maps" = "{hash_of("First words.")}"
"ValueError: no map" = "{hash_of("")}"
"ValueError: no map > Example" = "{hash_of("```python # not a heading x = 1 ```")}"
"ValueError: no map > How to fix" = "{hash_of("Take a map.")}"
"ValueError: no mesh" = "{hash_of("")}"
"ValueError: no mesh > Example" = "{hash_of("ValueError: no mesh")}"
"ValueError: no mesh > How to fix" = "{hash_of("Take a mesh.")}"

[claims."guide.fix-take-a-map"]
ref = "A1"
document = "guide"
heading = "ValueError: no map > How to fix"
statement = "A map helps."
kind = "fix"

[claims."quiet.rows"]
ref = "K1"
document = "quiet"
heading = ""
statement = "Rows are as before."
kind = "silence"
"""


def _load(tmp_path: Path, text: str) -> Claims:
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return load_claims(path)


@pytest.fixture(scope="module")
def published() -> Claims:
    return load_claims()


@pytest.fixture
def guide(tmp_path: Path) -> Claims:
    return _load(tmp_path, VALID)


# The file that is published.


@pytest.mark.parametrize("ref", REFS)
def test_every_subject_has_a_claim(published: Claims, ref: str) -> None:
    assert ref in {claim.ref for claim in published.claims.values()}


def test_no_claim_has_a_subject_of_its_own(published: Claims) -> None:
    assert {claim.ref for claim in published.claims.values()} <= set(REFS)


@pytest.mark.parametrize(("slug", "ref"), FIRST_CLAIMS.items())
def test_slugs_that_clauses_name_stay(published: Claims, slug: str, ref: str) -> None:
    assert published.claims[slug].ref == ref
    assert published.claims[slug].kind == ("fix" if ".fix-" in slug else "error")


def test_each_statement_is_made_once(published: Claims) -> None:
    statements = [claim.statement for claim in published.claims.values()]
    assert len(statements) == len(set(statements))


def test_each_claim_rests_on_a_text_that_can_drift(published: Claims) -> None:
    spoken = [claim for claim in published.claims.values() if claim.kind != SILENCE]
    assert spoken
    without = [
        claim.slug
        for claim in spoken
        if published.headings[claim.document][claim.heading] == hash_of("")
    ]
    assert without == []


def test_the_later_revision_has_its_own_claims_only(published: Claims) -> None:
    later = {c.ref for c in published.claims.values() if c.document == "migrate-pmap-later"}
    assert later == {"B3c", "D1", "D2", "D3", "D4", "D5"}


# What a claims file may not be.


def test_a_valid_file_loads(guide: Claims) -> None:
    assert guide.documents["guide"].title == "Guide to maps"
    claim = guide.claims["guide.fix-take-a-map"]
    assert (claim.ref, claim.kind, claim.statement) == ("A1", "fix", "A map helps.")
    assert guide.citing("guide", claim.heading) == (claim.slug,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('ref = "A1"', 'ref = "A1"\nnote = "x"', r"'guide.fix-take-a-map': unknown key note;"),
        ('ref = "A1"\n', "", r"'guide.fix-take-a-map': ref is missing"),
        ('ref = "A1"', 'ref = "first"', r"'first' is not a ref; write one such as"),
        ('ref = "A1"', "ref = 1", r"ref is 1; write one line of text"),
        ('kind = "fix"', 'kind = "cure"', r"unknown kind 'cure'; use one of: switch, error, fix"),
        ('document = "guide"', 'document = "gide"', r"unknown document 'gide'; use one of: guide"),
        ('"A map helps."', '"A map\\nhelps."', r"statement is 'A map\\nhelps.'; write one line"),
        ('"A map helps."', '"A map helps.\\n"', r"write one line of text without space around"),
        ('"A map helps."', '""', r"statement is empty; fill it in"),
        ('claims."guide.fix', 'claims."other.fix', r"write 'guide.<words>'"),
        ('claims."guide.fix', 'claims."guide.Fix', r"words in kebab-case; write 'guide.<words>'"),
        ('heading = "ValueError: no map >', 'heading = "No map >', r"'No map > How to fix' is not"),
        ('heading = "ValueError: no map > How to fix"', 'heading = ""', r"heading '' is not in"),
        ('kind = "fix"', 'kind = "silence"', r"kind 'silence' in 'guide', of format 'markdown'"),
        ('kind = "silence"', 'kind = "fix"', r"kind 'fix' in 'quiet', of format 'none'"),
        ('heading = ""', 'heading = "Rows"', r"a silence has no heading"),
        ('format = "markdown"', 'format = "html"', r"'guide': unknown format 'html'; use one of"),
        ('revision = "1"\n', "", r"document 'guide': revision is missing"),
        ("[documents.guide]", "[documents.Guide]", r"'Guide': the slug is not in kebab-case"),
        ("[headings.guide]", "[headings.gide]", r"headings of 'gide': there is no such document"),
        ("sha256:", "sha1:", r"headings of 'guide': 'Guide to maps' has 'sha1:.* for a hash"),
        ('[claims."quiet.rows"]', '[other."quiet.rows"]', r"claims.toml: unknown key other"),
        ("[documents.guide]", "[documents.guide", r"claims.toml is not valid TOML"),
    ],
)
def test_a_mistake_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in VALID
    with pytest.raises(ValueError, match=message):
        _load(tmp_path, VALID.replace(old, new, 1))


# Headings and their texts.


def test_markdown_headings() -> None:
    assert heading_texts(GUIDE, "markdown") == {
        "Guide to maps": "First words.",
        "ValueError: no map": "",
        "ValueError: no map > Example": "```python # not a heading x = 1 ```",
        "ValueError: no map > How to fix": "Take a map.",
        "ValueError: no mesh": "",
        "ValueError: no mesh > Example": "ValueError: no mesh",
        "ValueError: no mesh > How to fix": "Take a mesh.",
    }


def test_text_headings() -> None:
    texts = heading_texts(PAGE, "text")
    assert list(texts) == [
        "Guide to maps",
        "ValueError: no map",
        "ValueError: no map > Example",
        "ValueError: no map > How to fix",
        "ValueError: no mesh",
        "ValueError: no mesh > Example",
        "ValueError: no mesh > How to fix",
    ]
    assert texts["Guide to maps"] == f"First words. {CAPTION} # In file example.py..."
    assert texts["ValueError: no mesh > How to fix"] == "Take a mesh."


@pytest.mark.parametrize(("longer", "headings"), [(0, 1), (1, 0)])
def test_a_caption_is_told_by_its_length(longer: int, headings: int) -> None:
    line = "x" * (MAX_HEADING_CHARACTERS - 1 + longer) + "#"
    assert len(heading_texts(line, "text")) == headings


def test_a_known_subheading_keeps_its_key_where_it_stands_once() -> None:
    assert list(heading_texts("# Error\n## How to fix\n", "markdown")) == [
        "Error",
        "Error > How to fix",
    ]


def test_the_same_heading_twice_under_one_parent_loses_no_text() -> None:
    texts = heading_texts("# Error\n## Note\none\n## Note\ntwo\n", "markdown")
    assert texts["Error > Note"] == "one two"


def test_a_comment_of_a_sample_is_no_heading_of_a_text() -> None:
    assert list(heading_texts("Guide#\n# a comment #\n####\n", "text")) == ["Guide"]


def test_a_fence_that_names_a_language_does_not_end_a_fence() -> None:
    assert list(heading_texts("# A\n```\n```python\n# code\n```\n# B\n", "markdown")) == ["A", "B"]


def test_a_fence_ends_only_at_its_own_kind() -> None:
    text = "# A\n````\n```\n# code\n~~~\n````\n# B\n"
    assert list(heading_texts(text, "markdown")) == ["A", "B"]


def test_a_document_without_text_has_no_headings() -> None:
    with pytest.raises(ValueError, match="format 'none' has no headings"):
        heading_texts(GUIDE, "none")


# Drift.


def test_hash_is_short_and_depends_on_the_words() -> None:
    assert re.fullmatch("sha256:[0-9a-f]{16}", hash_of("Take a map."))
    assert hash_of("Take a map.") != hash_of("Take a mesh.")


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param("don\u2019t take\na map", id="quotation mark"),
        pytest.param("don\u03b2\u20ac\u2122t  take a map", id="decoded wrongly"),
        pytest.param("don\u2019t take a\u00a0map", id="non-breaking space"),
        pytest.param("don\u2019t takea map", id="words joined"),
    ],
)
def test_copies_that_differ_in_form_only_have_one_hash(copy: str) -> None:
    assert hash_of(copy) == hash_of("dont take a map")


def test_an_unchanged_document_has_no_drift(guide: Claims) -> None:
    assert drift(guide, {"guide": GUIDE}) == []


def test_changed_vanished_and_new_headings_are_found(guide: Claims) -> None:
    text = GUIDE.replace("Take a map.", "Take two maps.").replace("no mesh", "no sharding")
    found = drift(guide, {"guide": text})
    assert [(item.change, item.heading) for item in found] == [
        ("changed", "ValueError: no map > How to fix"),
        ("vanished", "ValueError: no mesh"),
        ("vanished", "ValueError: no mesh > Example"),
        ("vanished", "ValueError: no mesh > How to fix"),
        ("new", "ValueError: no sharding"),
        ("new", "ValueError: no sharding > Example"),
        ("new", "ValueError: no sharding > How to fix"),
    ]
    assert found[0].claims == ("guide.fix-take-a-map",)
    assert found[0].hash_now == hash_of("Take two maps.")
    assert str(found[0]).endswith("claims: guide.fix-take-a-map")
    assert found[1].hash_now == ""


def test_drift_of_an_unknown_document_is_refused(guide: Claims) -> None:
    with pytest.raises(ValueError, match="unknown document 'gide'; give one of: guide, quiet"):
        drift(guide, {"gide": GUIDE})


# The command line.


def _file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "document"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_command_names_headings_that_drifted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _file(tmp_path, "# Help! Fix me now!\n\nNothing is switched any more.\n")
    assert main(["drift", "migrate-pmap", file]) == EXIT_DRIFT
    lines = capsys.readouterr().out.splitlines()
    changed = [line for line in lines if line.startswith("changed:")]
    assert len(changed) == 1
    assert "'Help! Fix me now!'" in changed[0]
    assert "migrate-pmap.environment-variable" in changed[0]
    assert any(line.startswith("vanished:") and "Collectives" in line for line in lines)


def test_the_command_is_content_with_the_reviewed_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = _load(tmp_path, VALID)
    monkeypatch.setattr("conformance.__main__.load_claims", lambda: guide)
    assert main(["drift", "guide", _file(tmp_path, GUIDE)]) == EXIT_OK
    assert capsys.readouterr().out == "guide: as it was when it was reviewed\n"


def test_the_command_tells_a_mistake_from_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drift", "migrate-pmap", str(tmp_path / "absent")]) == EXIT_USAGE
    assert main(["drift", "no-such-document", _file(tmp_path, GUIDE)]) == EXIT_USAGE
    assert "unknown document 'no-such-document'" in capsys.readouterr().err


def test_the_command_lists_every_claim(
    capsys: pytest.CaptureFixture[str], published: Claims
) -> None:
    assert main(["claims"]) == EXIT_OK
    *lines, summary = capsys.readouterr().out.splitlines()
    assert len(lines) == len(published.claims)
    assert summary.startswith(f"{len(lines)} claims, ")


def test_the_published_file_lies_beside_the_code() -> None:
    assert CLAIMS_FILE.is_file()
