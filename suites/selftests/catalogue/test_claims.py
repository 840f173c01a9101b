"""The claims: the file that is published, what it refuses, and how drift of a document is found.

A claim that goes missing leaves a gap that no report can show, so the subjects that the file must
cover are written out here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.catalogue.claims import (
    CLAIMS_FILE,
    SILENCE,
    Claims,
    drift,
    load_claims,
)
from conformance.catalogue.documents import hash_of
from harness.commandline.command import DONE, FAILED, FOUND
from harness.commandline.main import main

SUBJECTS = {
    "A": 8,
    "B": 5,
    "C": 12,
    "D": 5,
    "E": 6,
    "F": 8,
    "G": 6,
    "H": 9,
    "I": 17,
    "J": 13,
    "K": 13,
}
FIXES = ("B1a", "B1b", "B1c", "B1d", "B2a", "B2b", "B2c", "B3a", "B3b", "B3c")
REFS = [
    *(f"{letter}{number}" for letter, last in SUBJECTS.items() for number in range(1, last + 1)),
    *FIXES,
]

LAST = "migrate-pmap-2026-08"

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
"ValueError: no map > Example" = "{hash_of("# not a heading x = 1")}"
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


def test_a_claim_says_in_which_revisions_it_stands_where_a_later_one_reads_otherwise(
    published: Claims,
) -> None:
    undecided = {one.slug: published.undecided(one) for one in published.claims.values()}
    assert {slug: later for slug, later in undecided.items() if later} == {}


def test_each_revision_that_follows_another_has_claims_of_its_own(published: Claims) -> None:
    later = [slug for slug, one in published.documents.items() if one.follows]
    assert later
    assert set(later) <= {one.document for one in published.claims.values()}


@pytest.mark.parametrize(
    ("slug", "stands_in"),
    [
        ("migrate-pmap.copy-arrays", ("migrate-pmap", "migrate-pmap-later", LAST)),
        ("migrate-pmap.name-single-device-sharding", ("migrate-pmap", LAST)),
        ("migrate-pmap-later.true-replication", ("migrate-pmap-later", LAST)),
        (f"{LAST}.reductions-outside-jit", (LAST,)),
        ("sharded-computation.plain-array-sharding", ("sharded-computation",)),
        ("pmap-silence.dispatch-cost", ("pmap-silence",)),
    ],
)
def test_the_revisions_of_some_claims(
    published: Claims, slug: str, stands_in: tuple[str, ...]
) -> None:
    assert published.stands_in(published.claims[slug]) == stands_in


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
        ('kind = "fix"', 'kind = "fix"\nrevisions = ["gide"]', r"revisions is \['gide'\]; write"),
        ('kind = "fix"', 'kind = "fix"\nrevisions = ["quiet"]', r"own, 'guide', first"),
        ('revision = "1"', 'revision = "1"\nfollows = "gide"', r"follows 'gide', which is no"),
        ('[claims."quiet.rows"]', '[other."quiet.rows"]', r"claims.toml: unknown key other"),
        ("[documents.guide]", "[documents.guide", r"claims.toml is not valid TOML"),
    ],
)
def test_a_mistake_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in VALID
    with pytest.raises(ValueError, match=message):
        _load(tmp_path, VALID.replace(old, new, 1))


# Drift.


def test_an_unchanged_document_has_no_drift(guide: Claims) -> None:
    assert drift(guide, {"guide": GUIDE}) == []


def test_changed_gone_and_new_headings_are_found(guide: Claims) -> None:
    text = GUIDE.replace("Take a map.", "Take two maps.").replace("no mesh", "no sharding")
    found = drift(guide, {"guide": text})
    assert [(item.change, item.heading) for item in found] == [
        ("changed", "ValueError: no map > How to fix"),
        ("gone", "ValueError: no mesh"),
        ("gone", "ValueError: no mesh > Example"),
        ("gone", "ValueError: no mesh > How to fix"),
        ("new", "ValueError: no sharding"),
        ("new", "ValueError: no sharding > Example"),
        ("new", "ValueError: no sharding > How to fix"),
    ]
    assert found[0].claims == ("guide.fix-take-a-map",)
    assert found[0].hash_now == hash_of("Take two maps.")
    assert str(found[0]).endswith("claims: guide.fix-take-a-map")
    assert found[1].hash_now == ""


REVISED = f"""
[documents.guide-2]
title = "Guide to maps"
revision = "2"
format = "text"
follows = "guide"

[headings.guide-2]
"Guide to maps" = "{hash_of("First words.")}"
"ValueError: no map > How to fix" = "{hash_of("Take a map, or two.")}"
"""


def _revised(tmp_path: Path, kind: str) -> Claims:
    documents, headings = REVISED.split("\n\n[headings", 1)
    text = VALID.replace(
        "[headings.guide]", f"{documents}\n\n[headings{headings}\n[headings.guide]"
    )
    return _load(tmp_path, text.replace('kind = "fix"', kind))


def test_a_claim_stands_in_a_later_revision_whose_section_is_the_same(tmp_path: Path) -> None:
    claims = _revised(tmp_path, 'kind = "fix"')
    claim = claims.claims["guide.fix-take-a-map"]
    assert claims.stands_in(claim) == ("guide",)
    assert claims.undecided(claim) == ("guide-2",)
    first = replace(claim, heading="Guide to maps")
    assert claims.stands_in(first) == ("guide", "guide-2")
    assert claims.undecided(first) == ()


def test_a_claim_decides_where_a_later_revision_reads_otherwise(tmp_path: Path) -> None:
    claims = _revised(tmp_path, 'kind = "fix"\nrevisions = ["guide", "guide-2"]')
    claim = claims.claims["guide.fix-take-a-map"]
    assert claims.stands_in(claim) == ("guide", "guide-2")
    assert claims.undecided(claim) == ()
    assert claims.citing("guide-2", claim.heading) == (claim.slug,)


def test_a_section_that_is_gone_and_back_is_not_in_between(published: Claims) -> None:
    one = published.claims["migrate-pmap.pmap-sharding-legacy"]
    assert one.heading == "Shardings"
    assert published.stands_in(one) == ("migrate-pmap", LAST)


SAVED_GUIDE = """\
Guide to `maps`#
First words.
ValueError: no map#
Example#
# not a heading
x = 1
How to fix#
Take a map.
ValueError: no mesh#
Example#
ValueError: no mesh
How to fix#
Take
a mesh.
"""


def test_a_saved_page_of_a_markdown_document_has_no_drift(guide: Claims) -> None:
    assert drift(guide, {"guide": SAVED_GUIDE}) == []


def test_drift_of_a_saved_page_is_that_of_its_words(guide: Claims) -> None:
    page = SAVED_GUIDE.replace("Take a map.", "Take two maps.").replace("no mesh#", "no sharding#")
    assert [(item.change, item.heading) for item in drift(guide, {"guide": page})] == [
        ("changed", "ValueError: no map > How to fix"),
        ("gone", "ValueError: no mesh"),
        ("gone", "ValueError: no mesh > Example"),
        ("gone", "ValueError: no mesh > How to fix"),
        ("new", "ValueError: no sharding"),
        ("new", "ValueError: no sharding > Example"),
        ("new", "ValueError: no sharding > How to fix"),
    ]


def test_drift_of_an_unknown_document_is_refused(guide: Claims) -> None:
    with pytest.raises(ValueError, match=r"'gide'.*guide, quiet"):
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
    assert main(["drift", "migrate-pmap", file]) == FOUND
    lines = capsys.readouterr().out.splitlines()
    changed = [line for line in lines if line.startswith("changed:")]
    assert len(changed) == 1
    assert "'Help! Fix me now!'" in changed[0]
    assert "migrate-pmap.environment-variable" in changed[0]
    assert any(line.startswith("gone:") and "Collectives" in line for line in lines)


def test_the_command_is_content_with_the_reviewed_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = _load(tmp_path, VALID)
    monkeypatch.setattr("conformance.catalogue.claims.load_claims", lambda: guide)
    assert main(["drift", "guide", _file(tmp_path, GUIDE)]) == DONE
    assert re.fullmatch(r"guide: .+\n", capsys.readouterr().out)


def test_the_command_says_in_which_revisions_a_claim_stands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "claims", "migrate-pmap.copy-arrays"]) == DONE
    revisions = f" migrate-pmap, migrate-pmap-later, {LAST}\n"
    assert revisions in capsys.readouterr().out


def test_the_command_tells_a_mistake_from_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drift", "migrate-pmap", str(tmp_path / "absent")]) == FAILED
    assert main(["drift", "no-such-document", _file(tmp_path, GUIDE)]) == FAILED
    assert "unknown document 'no-such-document'" in capsys.readouterr().err


def test_the_command_lists_every_claim(
    capsys: pytest.CaptureFixture[str], published: Claims
) -> None:
    assert main(["list", "claims"]) == DONE
    *lines, summary = capsys.readouterr().out.splitlines()
    assert len(lines) == len(published.claims)
    assert summary.startswith(f"{len(lines)} claims, ")


def test_the_published_file_lies_beside_the_code() -> None:
    assert CLAIMS_FILE.is_file()
