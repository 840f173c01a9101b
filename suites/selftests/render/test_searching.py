"""The contents of the search index."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from records import Record, cause, cell, claim, clause, deviation, target, timing
from site_pages import loaded, search_rows

from reports.analysis.effects.pairs import Effects
from reports.analysis.errors.messages import messages, recorded_messages
from reports.render.site.build import asked, render
from reports.render.site.searching import Entry, entries, pages
from reports.store.results import Results

A_STATEMENT = {"statement": "Donated arguments are kept."}


def results_of(*records: Record) -> Any:
    with TemporaryDirectory() as folder:
        return loaded(Path(folder), list(records))


def stated(*verdicts: str, **of_claim: Any) -> Any:
    """Results with one statement, whose checks had these verdicts."""
    checks = [f"errors.{n}" for n, _ in enumerate(verdicts)]
    return results_of(
        target(),
        claim("migrate-pmap.errors", **A_STATEMENT | of_claim),
        *(clause(id, topologies=["4x2"], expected={"new_pmap": "returns"}) for id in checks),
        *(cell(id, verdict) for id, verdict in zip(checks, verdicts, strict=True)),
    )


@pytest.mark.parametrize(
    ("name", "seen", "sort"),
    [
        ("seen in the newest", "jax==0.9.0", "cause"),
        ("seen before it alone", "jax==0.8.0", "ended"),
        ("seen nowhere", "", "cause"),
    ],
)
def test_what_the_newest_jax_no_longer_does_has_ended(name: str, seen: str, sort: str) -> None:
    entry = deviation(cause="one-cause")
    results = results_of(
        target("0.8.0"),
        target("0.9.0"),
        clause("errors.a"),
        cause("one-cause"),
        *(
            cell("errors.a", "known deviation", target=one, deviation=entry)
            if one == seen
            else cell("errors.a", target=one)
            for one in ("jax==0.8.0", "jax==0.9.0")
        ),
    )
    [found] = [e for e in entries(asked(results), ()) if e.href.startswith("causes/")]
    assert found.sort == sort, name


@pytest.fixture(scope="module")
def results_of_a_crash() -> Results:
    id = "multi_controller.a"
    return results_of(
        target(),
        claim("migrate-pmap.errors"),
        clause(id, section="multi_controller"),
        cell(id, "crashed", observations=[]),
        timing(id),
    )


@pytest.fixture(scope="module")
def found(results_of_a_crash: Results) -> tuple[Entry, ...]:
    """The entries of the search."""
    results = results_of_a_crash
    met = messages(results, Effects(results, recorded_messages).once.to(recorded_messages))
    return tuple(entries(asked(results), met))


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("segfault", "hazards.html"),
        ("crash", "hazards.html"),
        ("hang", "hazards.html"),
        ("slower", "cost.html"),
        ("performance", "cost.html"),
        ("errata", "errata.html"),
        ("2x2", "subjects/multi_controller.html"),
        ("hosts", "subjects/multi_controller.html"),
        ("several processes", "subjects/multi_controller.html"),
        ("segfault", "errors/killed-by-sigsegv.html"),
    ],
)
def test_what_people_type_is_a_tag_of_a_page(
    word: str, page: str, found: tuple[Entry, ...]
) -> None:
    tagged = {one.href: one.tags.split(" · ") for one in found}
    assert word in tagged[page]


def test_every_entry_leads_to_a_page_of_the_site(
    found: tuple[Entry, ...], results_of_a_crash: Results
) -> None:
    site = render(results_of_a_crash)
    for one in found:
        assert one.href.partition("#")[0] in site, one.href


@pytest.mark.parametrize(
    ("name", "verdicts", "holds"),
    [
        ("true", ("conforms",), "true on JAX 0.9.0"),
        ("untrue", ("deviates",), "untrue on JAX 0.9.0"),
        ("in part", ("conforms", "deviates"), "not always true on JAX 0.9.0"),
        ("nobody looked", (), "not checked on JAX 0.9.0"),
    ],
)
def test_a_statement_carries_whether_it_is_so(
    name: str, verdicts: tuple[str, ...], holds: str
) -> None:
    [one] = [e for e in entries(asked(stated(*verdicts)), ()) if e.sort == "statement"]
    assert "“Migrating to the new pmap”" in one.source
    assert one.holds.partition(":")[0] == holds, name
    assert ("under new pmap" in one.holds) is (name == "in part")


def test_what_no_document_says_is_no_statement_of_one() -> None:
    [one] = [
        e
        for e in entries(asked(stated("deviates", claim_kind="silence")), ())
        if e.sort == "statement"
    ]
    assert "legacy" in one.source
    assert one.holds.startswith("unlike legacy")


def test_a_statement_of_a_later_revision_leads_to_the_page_of_all_revisions() -> None:
    results = stated("conforms", document="migrate-pmap-later", outline="migrate-pmap")
    [one] = [e for e in entries(asked(results), ()) if e.sort == "statement"]
    assert one.href == "documents/migrate-pmap.html#migrate-pmap.errors"


def test_the_index_has_it() -> None:
    index = search_rows({one.path: one.text for one in pages(asked(stated("deviates")), ())})
    [row] = [row for row in index if row[0] == "statement"]
    [one] = [e for e in entries(asked(stated("deviates")), ()) if e.sort == "statement"]
    assert row[-2:] == [one.source, one.holds]
