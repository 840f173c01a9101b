"""Annotated documents, errata and what is unknown: every claim is a row, every gap is drawn."""

from __future__ import annotations

import re
from typing import Any

import pytest
from records import (
    Record,
    cause,
    claim,
    clause,
    deviation,
    finding,
    observation,
    raised,
    returned,
    target,
    unavailable,
)
from records import cell as cell_on
from sample_results import HOSTILE, MARKUP
from site_pages import Tags, links_in, results_of, text_in, tree

from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.severity import Severity
from reports.render.site.build import render
from reports.render.site.corrections import Correction, corrections
from reports.render.site.documents import Document, documents
from reports.render.site.errata import errata_page
from reports.render.site.marks import Mark, together
from reports.render.site.strips import ranges, strip, worst_strips
from reports.render.site.unknown import unknown_page

VERSIONS = ("0.9.0", "0.9.2", "0.10.0", "0.12.0.1")
OLD, NEW = target("0.9.0"), target("0.12.0.1")
LEGACY, PMAP = "legacy_pmap", "new_pmap"
MOST_WORDS = 16  # of what a correction says in short


def cell(id: str, verdict: str = "conforms", **other: Any) -> Record:
    """A cell on one process unless told otherwise."""
    return cell_on(id, verdict, **{"topology": "1x8"} | other)


def deviating(
    id: str, *, why: str = "It was removed.", kind: str = "documentation", **other: Any
) -> Record:
    """A cell in which something else happened than the document says."""
    entry = deviation(observed="^raised", why=why, kind=kind, review=None, jax=None)
    return cell(id, "known deviation", deviation=entry | other.pop("entry", {}), **other)


def placed(slug: str, heading: str, order: int, **other: Any) -> Record:
    """A claim that knows its place."""
    more = {"outline": "guide", "order": order, "revisions": ["first"], "current": True}
    return claim(slug, document="guide", heading=heading, **more | other)


@pytest.mark.parametrize(
    ("name", "marks", "whole"),
    [
        ("all right", [Mark.RIGHT, Mark.RIGHT], Mark.RIGHT),
        ("all wrong", [Mark.WRONG], Mark.WRONG),
        ("some", [Mark.RIGHT, Mark.WRONG], Mark.PARTLY),
        ("what did not run decides nothing", [Mark.NOT_RUN, Mark.WRONG, Mark.NONE], Mark.WRONG),
        ("nothing ran", [Mark.NOT_RUN, Mark.NONE], Mark.NOT_RUN),
        ("nothing applies", [Mark.NONE], Mark.NONE),
        ("nothing at all", [], Mark.NONE),
    ],
)
def test_together(name: str, marks: list[Mark], whole: Mark) -> None:
    assert together(marks) is whole, name


def test_a_strip_says_in_words_what_it_draws() -> None:
    marks = [Mark.RIGHT, Mark.RIGHT, Mark.WRONG, Mark.NOT_RUN]
    one = strip(PMAP, "1x8", marks, VERSIONS)
    assert one.says.split("; ") == [
        f"{Mark.RIGHT.value} {ranges(VERSIONS, VERSIONS[:2])}",
        f"{Mark.WRONG.value} 0.10.0",
        f"{Mark.NOT_RUN.value} 0.12.0.1",
    ]
    assert sum(times for _, times in one.runs) == len(VERSIONS)
    assert not one.always_right


def test_the_worst_topology_is_drawn_and_what_applies_nowhere_is_not() -> None:
    right, wrong, none = ([mark] * 4 for mark in (Mark.RIGHT, Mark.WRONG, Mark.NONE))
    drawn = worst_strips(
        {
            (PMAP, "1x8"): wrong,
            (PMAP, "2x2"): [*right[:3], Mark.WRONG],
            ("shard_map", "1x8"): none,
            (LEGACY, "1x8"): right,
            (LEGACY, "4x2"): right,
        },
        VERSIONS,
    )
    assert [(s.implementation, s.topology) for s in drawn] == [(LEGACY, "4x2"), (PMAP, "1x8")]


@pytest.mark.parametrize(
    ("name", "held", "said"),
    [
        ("none", (), ""),
        ("one", ("0.9.2",), "0.9.2"),
        ("neighbours", ("0.9.0", "0.9.2"), "0.9.0 to 0.9.2"),
        ("apart", ("0.9.0", "0.10.0", "0.12.0.1"), "0.9.0, 0.10.0 to 0.12.0.1"),
    ],
)
def test_ranges(name: str, held: tuple[str, ...], said: str) -> None:
    assert ranges(VERSIONS, held) == said, name


def guide(*cells: Record) -> Document:
    """A document of two headings, the later one first in the file, and a gap."""
    results = results_of(
        OLD,
        placed("b", "Second", 1),
        placed("a", "First > Example", 0),
        placed("gap", "First > Example", 0),
        clause("errors.a", claim="a", topologies=["1x8"]),
        clause("errors.b", claim="b", topologies=["1x8"]),
        *cells,
    )
    (one,) = documents(results)
    return one


def test_headings_stand_in_the_documents_order() -> None:
    one = guide(cell("errors.a"))
    assert [heading.parts for heading in one.headings] == [("First", "Example"), ("Second",)]


def test_every_claim_is_a_row() -> None:
    one = guide(cell("errors.a"))
    assert [row.claim.slug for row in one.claims] == ["a", "gap", "b"]
    assert [row.newest for row in one.claims] == [Mark.RIGHT, Mark.NOT_RUN, Mark.NOT_RUN]
    assert (one.gaps, one.counted(Mark.RIGHT)) == (1, 1)


def test_a_heading_counts_what_is_untrue_under_it() -> None:
    one = guide(cell("errors.a"), deviating("errors.b"))
    assert [heading.untrue for heading in one.headings] == [0, 1]


def test_claims_of_older_files_keep_their_order_in_the_file() -> None:
    results = results_of(OLD, claim("x", heading="B"), claim("y", heading="A"))
    (one,) = documents(results)
    assert [heading.parts for heading in one.headings] == [("B",), ("A",)]


def test_a_silence_stands_under_the_section_of_its_checks() -> None:
    silence = claim("s", document="silent", heading="", claim_kind="silence")
    results = results_of(OLD, silence, clause("errors.s", claim="s", section="errors"))
    (one,) = documents(results)
    assert one.silent
    assert one.headings[0].parts == ("errors",)


def test_the_newest_is_the_newest_that_ran() -> None:
    results = results_of(
        OLD,
        placed("a", "First", 0),
        clause("errors.a", claim="a"),
        deviating("errors.a"),
        unavailable("jax==99.0", "no such version"),
    )
    (one,) = documents(results)
    assert one.newest == "0.9.0"
    assert one.claims[0].newest is Mark.WRONG


def entry(*cells: Record, **of_claim: Any) -> tuple[str, str]:
    """The kind and the text of the only entry."""
    results = results_of(
        OLD,
        placed("a", "First", 0, url="https://example.org/guide#first", **of_claim),
        clause("errors.a", claim="a", topologies=["1x8", "2x2"]),
        cause("gone", program="print('```')\n", command="python gone.py"),
        *cells,
    )
    (group,) = errata_page(Effects(results), documents(results)).groups
    ((_, (entry,)),) = group.documents
    return entry.kind, entry.text


def seen_instead(text: str) -> list[tuple[str, str]]:
    """Return the items of what was seen instead: where, and what."""
    return re.findall(r"^\* ([^:\n]+): (.*)$", text, re.MULTILINE)


def test_the_text_has_all_that_an_issue_needs() -> None:
    kind, text = entry(
        deviating(
            "errors.a", reason="raised ValueError (phase lower): no", entry={"cause": "gone"}
        ),
        cell("errors.a", topology="2x2"),
    )
    assert kind == "documentation"
    for words in (
        "**Migrating to the new pmap > First**",
        "https://example.org/guide#first",
        "Reviewed revision: first.",
        "What a says.",
        "jax 0.9.0, Python 3.11.7, cpu",
        "this claim holds in 1 of 2 tests. The failures (",
        "* new pmap on 1x8: raised ValueError: no",
        "It was removed.",
        "`python gone.py`",
        "`errors.a`",
    ):
        assert words in text, words


def test_an_implementation_that_fails_alone_is_named() -> None:
    results = results_of(
        OLD,
        placed("a", "First", 0),
        clause("errors.a", claim="a"),
        deviating("errors.a", implementation="shard_map"),
        cell("errors.a"),
    )
    [group] = errata_page(Effects(results), documents(results)).groups
    [(_, [one])] = group.documents
    assert (one.failed, one.ran, one.only) == (1, 2, "shard_map")
    assert "all failures under shard_map" in text_in(tree(render(results)["errata.html"]))


@pytest.mark.parametrize(
    ("slug", "severity"),
    [("gone", Severity.WRONG_NUMBERS), ("cpu-ids-by-2048", Severity.REST)],
)
def test_what_is_only_numbered_otherwise_is_no_wrong_value(slug: str, severity: Severity) -> None:
    results = results_of(
        OLD,
        placed("a", "First", 0),
        clause("errors.a", claim="a"),
        cause(slug),
        deviating(
            "errors.a",
            entry={"cause": slug},
            observations=[observation(returned([2.0]))],
            findings=[finding("same shape, wrong values: [2.]", "value")],
        ),
    )
    [group] = errata_page(Effects(results), documents(results)).groups
    assert group.severity is severity


def test_a_program_cannot_close_its_fence() -> None:
    _, text = entry(deviating("errors.a", entry={"cause": "gone"}))
    assert "\n````python\nprint('```')\n````\n" in text


def test_behaviour_that_differs_in_numbers_only_is_told_once() -> None:
    _, text = entry(
        deviating("errors.a", reason="returned [1., 2.]"),
        deviating("errors.a", reason="returned [3., 4., 5.]", topology="2x2"),
    )
    assert seen_instead(text) == [("new pmap on 1x8, 2x2", "returned [1., 2.]")]
    assert " none of 2 " in text


def test_what_two_entries_say_alike_is_said_once() -> None:
    _, text = entry(
        deviating("errors.a", reason="raised A", entry={"why": "It was removed. In 0.10."}),
        deviating(
            "errors.a", reason="raised B", entry={"why": "It was removed. So is B."}, topology="2x2"
        ),
    )
    assert text.count("It was removed.") == 1
    assert "\nIt was removed. In 0.10.\n\nSo is B.\n" in text


def test_a_job_is_told_from_a_process_of_a_cluster_that_is_named() -> None:
    hangs = finding("hangs | made", "note", step="process 0")
    _, text = entry(deviating("errors.a", reason="process 0: hangs", findings=[hangs]))
    ((where, what),) = seen_instead(text)
    assert ("1x8" in where, what) == (False, "process 0: hangs")
    _, text = entry(deviating("errors.a", reason="process 1 was killed"))
    assert seen_instead(text) == [("new pmap on 1x8", "process 1 was killed")]


def test_what_this_jax_no_longer_has_is_not_said_to_have_run() -> None:
    legacy = {"implementation": "legacy_pmap"}
    _, text = entry(
        deviating("errors.a", reason="ran new pmap", **legacy),
        cell("errors.a", "removed", topology="2x2", **legacy),
    )
    ((where, what),) = seen_instead(text)
    assert (where.startswith("legacy pmap on"), what) == (False, "ran new pmap")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "raised ChildError (phase execute): AttributeError: no name",
            "raised AttributeError: no name",
        ),
        ("raised ChildError: exit status 1: FATAL", "ended with exit status 1: FATAL"),
        (
            "first call: WRONG: no local values to compare: 'x'",
            "first call: this process holds no values to compare: 'x'",
        ),
        ("returned WRONG", "returned WRONG"),
        ("first call: it is its own sum: 2", "first call: the result is its own sum: 2"),
        ("first call: so it is not", "first call: so it is not"),
    ],
)
def test_our_own_classes_are_not_named(reason: str, said: str) -> None:
    assert f": {said}\n" in entry(deviating("errors.a", reason=reason))[1]


def test_a_remedy_is_no_check_of_the_statement_that_it_remedies() -> None:
    results = results_of(
        OLD,
        placed("a", "First", 0),
        placed("b", "First", 1),
        clause("errors.a", claim="a"),
        clause("errors.fix", claim="a", fixes="errors.a"),
        clause("errors.b", claim="b", fixes="errors.a"),
        deviating("errors.a"),
        cell("errors.fix"),
        cell("errors.b"),
    )
    [document] = documents(results)
    said = {
        row.claim.slug: (row.newest, [c.instead for c in row.clauses]) for row in document.claims
    }
    assert said == {"a": (Mark.WRONG, [False, True]), "b": (Mark.RIGHT, [False])}
    [group] = errata_page(Effects(results), (document,)).groups
    [(_, [entry])] = group.documents
    assert (entry.failed, entry.ran, entry.only) == (1, 1, "")
    assert "not counted" in render(results)[document.path]


def test_statements_of_one_document_that_fail_by_one_cause_are_one_entry() -> None:
    results = results_of(
        OLD,
        *(placed(slug, slug.upper(), order) for order, slug in enumerate("abcd")),
        *(clause(f"errors.{slug}", claim=slug) for slug in "abcd"),
        cause("gone", program="pass\n", command="python gone.py"),
        *(deviating(f"errors.{slug}", entry={"cause": "gone"}) for slug in "ac"),
        *(deviating(f"errors.{slug}") for slug in "bd"),
    )
    page = errata_page(Effects(results), documents(results))
    [group] = page.groups
    [(_, entries)] = group.documents
    assert [[one.anchor for one in entry.statements] for entry in entries] == [
        ["a", "c"],
        ["b"],
        ["d"],
    ]
    assert group.words == "4 claims"
    assert (page.size, page.checked) == (4, 4)
    text = entries[0].text
    assert (entries[0].failed, entries[0].ran) == (2, 2)
    assert text.count("`python gone.py`") == 1
    assert text.index("> A**") < text.index("> C**")
    site = render(results)
    whole = site["data/errata.md"]
    assert re.search(r"\* What a says\. / What c says\. \(.*0 of 2 ", whole)
    assert whole.count(f"---\n\n{group.title}\n\n") == 3
    assert f"{text}\n---\n" in whole
    assert "data/errata.md" in links_in(tree(site["errata.html"]))


def test_corrections_come_by_effect_and_claims_without_one_are_named() -> None:
    in_one = [one for one in corrections() if one.file == corrections()[0].file]
    early, late = in_one[0].claims[0], in_one[-1].claims[0]
    results = results_of(
        OLD,
        *(placed(slug, slug, order) for order, slug in enumerate((early, late, "b"))),
        *(clause(f"errors.{slug}", claim=slug) for slug in (early, late, "b")),
        deviating(f"errors.{early}", kind="platform"),
        *(deviating(f"errors.{slug}") for slug in (late, "b")),
    )
    page = errata_page(Effects(results), documents(results))
    claims = [one.correction.claims for one in page.corrections]
    assert late in claims[0]
    assert early in claims[-1]
    assert page.corrections[-1].severity is Severity.PLATFORM
    assert [one.text for one in page.uncorrected] == ["What b says."]
    site = render(results)
    assert "1 failing claim has no correction: What b says." in text_in(tree(site["errata.html"]))
    lines = [int(line) for line in re.findall(r"(?m)^@@ -(\d+)", site["data/corrections.patch"])]
    assert lines == sorted(lines)
    shown = text_in(tree(site["errata.html"]))
    first, last = (f"line {it.line} {it.short.replace('`', '')}" for it in (in_one[-1], in_one[0]))
    assert shown.index(first) < shown.index(last)


@pytest.mark.parametrize("one", corrections(), ids=lambda one: f"{one.file}-{one.line}")
def test_a_correction_says_in_a_few_words_what_is_so_and_keeps_the_indentation(
    one: Correction,
) -> None:
    assert 1 < len(one.short.split()) <= MOST_WORDS
    old, new = (len(text) - len(text.lstrip(" ")) for text in (one.old[0], one.new[0]))
    assert old == new  # or a paragraph would leave its list


def test_what_is_never_true_comes_first_and_what_is_the_platforms_last() -> None:
    results = results_of(
        OLD,
        *(placed(slug, "First", order) for order, slug in enumerate("abc")),
        *(clause(f"errors.{slug}", claim=slug, topologies=["1x8", "2x2"]) for slug in "abc"),
        *(deviating(f"errors.{slug}") for slug in "ab"),
        cell("errors.a", topology="2x2"),
        deviating("errors.c", kind="platform"),
    )
    groups = errata_page(Effects(results), documents(results)).groups
    slugs = [
        [one.anchor for _, some in g.documents for e in some for one in e.statements]
        for g in groups
    ]
    assert slugs == [["b", "a"], ["c"]]
    assert [e.never for _, some in groups[0].documents for e in some] == [True, False]
    assert groups[-1].severity is Severity.PLATFORM


def test_what_harms_most_comes_first_with_what_happens_instead() -> None:
    wrong = [finding("same shape, wrong values: [2.]", "value")]
    refused = [finding("raised ValueError: no", "error")]
    results = results_of(
        OLD,
        *(placed(slug, "First", order) for order, slug in enumerate("abc")),
        *(clause(f"errors.{slug}", claim=slug) for slug in "ab"),
        clause("errors.c", claim="c", fixes="errors.a"),
        deviating(
            "errors.a", findings=refused, observations=[observation(raised("ValueError", "no"))]
        ),
        deviating(
            "errors.b",
            reason="first call: wrong",
            findings=wrong,
            observations=[observation(returned([2.0]))],
        ),
        deviating(
            "errors.c", findings=refused, observations=[observation(raised("ValueError", "no"))]
        ),
    )
    groups = errata_page(Effects(results), documents(results)).groups
    assert [(g.severity, g.size) for g in groups] == [
        (Severity.WRONG_NUMBERS, 1),
        (Severity.FIX_FAILS, 1),
        (Severity.RAISES, 1),
    ]
    ((_, (entry,)),) = groups[0].documents
    assert (entry.statements[0].anchor, entry.instead) == ("b", "first call: wrong")
    page = tree(render(results)["errata.html"])
    linked = [href.removeprefix("#") for href in links_in(page)]
    for anchors in (linked, [one.get("id") for one in page.iter()]):
        assert anchors.index("wrong-numbers") < anchors.index("raises")


@pytest.mark.parametrize(
    ("kind", "said"),
    [("implementation", "implementation"), ("platform", "platform"), ("odd", "implementation")],
)
def test_it_is_told_who_errs(kind: str, said: str) -> None:
    assert entry(deviating("errors.a", kind=kind))[0] == said


def test_what_is_true_is_not_there() -> None:
    results = results_of(
        OLD, placed("a", "First", 0), clause("errors.a", claim="a"), cell("errors.a")
    )
    assert not errata_page(Effects(results), documents(results)).groups


def test_hostile_texts_are_shown_and_not_run() -> None:
    site = render(
        results_of(
            OLD,
            placed(HOSTILE, HOSTILE, 0, statement=HOSTILE, url="javascript:alert(1)"),
            clause("errors.a", claim=HOSTILE, title=HOSTILE),
            deviating("errors.a", why=HOSTILE, reason=HOSTILE * 2000),
        )
    )
    pages = [page for name, page in site.items() if name.endswith(".html")]
    assert len(pages) > 8
    for page in pages:
        tags = Tags(page)
        assert all(attrs.get("src") for tag, attrs in tags.tags if tag == "script")
        assert not any(h.startswith("javascript") for h in tags.attributes("href"))
        assert "\x1b" not in page
    assert MARKUP in Tags(site["errata.html"]).text


def test_what_nobody_looked_at_is_listed() -> None:
    page = unknown_page(
        results_of(
            OLD,
            NEW,
            claim("migrate-pmap.errors"),
            claim("gap"),
            clause("errors.a", topologies=["1x8"], left_out="too small"),
            clause("errors.b", topologies=["1x8", "2x2"]),
            clause("errors.never", topologies=["1x8"]),
            cell("errors.a"),
            cell("errors.b", topology="2x2"),
        ),
        ("cpu",),
    )
    ((_, (gap,)),) = page.gaps
    assert gap.claim.slug == "gap"
    assert [check.title for check in page.never] == ["Title of errors.never"]
    assert ("2x2", 1, 3) in page.coverage
    topologies = [one for one, _, _ in page.coverage]
    [reason] = (one for one in page.left_out if one.reason == "too small")
    assert dict(zip(topologies, reason.counts, strict=True)) == {"1x8": 0, "2x2": 1}
    assert page.others == ("cuda", "tpu")
    assert {version for one in page.not_run for version in one.versions} == {
        "0.9.0",
        "0.12.0.1",
    }
    # Of errors.a one of six cells ran, of errors.b one of twelve.
    assert sum(one.cells for one in page.not_run) == 16


def test_a_topology_that_a_test_is_not_about_lacks_no_result() -> None:
    ran = [cell("errors.a", target=jax, topology="2x2") for jax in ("jax==0.9.0", "jax==0.12.0.1")]
    there = results_of(
        OLD,
        NEW,
        claim("migrate-pmap.errors"),
        *(clause(id, topologies=["2x2"], left_out="as there") for id in ("errors.a", "errors.b")),
        *(cell(id, "not applicable", observations=[]) for id in ("errors.a", "errors.b")),
        *ran,
    )
    # Of errors.b nothing else is on record.
    assert there.grid == {"errors.a": ("2x2",), "errors.b": ("1x8", "2x2")}
    [reason] = unknown_page(there, ("cpu",)).left_out
    assert (reason.reason, reason.counts) == ("the test is about several processes", (1, 0))


def test_what_does_not_apply_is_no_result() -> None:
    here = cell("errors.a"), cell("errors.b", "not applicable", observations=[])
    page = unknown_page(
        results_of(
            OLD,
            claim("migrate-pmap.errors"),
            *(clause(id, topologies=["1x8"]) for id in ("errors.a", "errors.b")),
            *here,
        ),
        ("cpu",),
    )
    assert page.coverage == (("1x8", 1, 2),)


def test_the_whole_is_known_of_a_whole_run() -> None:
    page = unknown_page(
        results_of(
            OLD,
            claim("migrate-pmap.errors"),
            clause("errors.a", topologies=["1x8"], expected={PMAP: "returns"}),
            cell("errors.a"),
        ),
        ("cpu",),
    )
    assert (page.gaps, page.never, page.left_out, page.not_run) == ((), (), (), ())


def test_results_that_say_nothing_of_warnings_between_the_steps_are_counted() -> None:
    """They were recorded by an earlier harness; a cell that was not run is none of them."""
    earlier = observation()
    del earlier["between"]
    results = results_of(
        OLD,
        claim("migrate-pmap.errors"),
        *(clause(id, topologies=["4x2"]) for id in ("errors.a", "errors.b", "errors.c")),
        cell("errors.a"),
        cell("errors.b", observations=[earlier]),
        cell("errors.c", "removed"),
    )
    assert unknown_page(results, ("cpu",)).unrecorded == (1, 2)
