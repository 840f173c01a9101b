"""A subject's page has all of it that other pages tell, and leads to where it is told whole."""

from __future__ import annotations

import pytest
from records import Record, cause, cell, claim, clause, deviation, step, target, timing
from site_pages import Tags, links_in, results_of, section, text_in, tree
from two_sides import FAILS, FINE, FROM, HEAD, TO, ran

from reports.render.site.build import asked, render
from reports.render.site.searching import entries
from reports.render.site.subjects import clauses_of, subjects
from reports.store.results import Results

PAGE = "subjects/donation.html"
OF_DONATION, OF_LOOPS, OF_ERRORS = "donation.a", "idioms.loop", "errors.a"
NOTED = {"memory": {"what": "a donated argument", "multiple": 2.5}}


def records() -> list[Record]:
    """A section of donation, a claim of it in another section, and something else."""
    entry = deviation(cause="reuse-refused")
    peak = step("peak", value=FINE["value"], extra=NOTED)
    silence = claim("pmap-silence.donated-state") | {"statement": "A state is given up each step."}
    return [
        *HEAD,
        silence,
        claim("migrate-pmap.given"),
        cause("reuse-refused") | {"section": "donation"},
        cause("elsewhere") | {"section": "errors", "tags": ["donate_argnums"]},
        cause("shown") | {"section": "errors"},
        cause("unrelated") | {"section": "errors", "tags": ["x[0]"]},
        clause(OF_DONATION, section="donation", claim="migrate-pmap.given"),
        clause(OF_LOOPS, section="idioms", claim="pmap-silence.donated-state"),
        clause(OF_ERRORS, section="errors", claim="migrate-pmap.errors"),
        ran(OF_DONATION, FROM, FINE, peak),
        ran(OF_DONATION, TO, FAILS, verdict="known deviation", deviation=entry),
        ran(OF_LOOPS, FROM, FINE),
        ran(OF_LOOPS, TO, FAILS, verdict="known deviation", deviation=deviation(cause="shown")),
        *(ran(OF_ERRORS, side, FINE) for side in (FROM, TO)),
    ]


@pytest.fixture(scope="module")
def results() -> Results:
    return results_of(*records())


@pytest.fixture(scope="module")
def site(results: Results) -> dict[str, str]:
    return render(results)


@pytest.fixture(scope="module")
def page(site: dict[str, str]) -> str:
    return site[PAGE]


def test_its_clauses_are_those_of_the_section_and_of_claims_about_it(results: Results) -> None:
    donation = next(one for one in subjects(results) if one.section == "donation")
    assert clauses_of(results, donation) == {OF_DONATION, OF_LOOPS}


@pytest.mark.parametrize(
    ("what", "address"),
    [
        ("a statement of its section", "documents/migrate-pmap.html#migrate-pmap.given"),
        ("its cause", "causes/reuse-refused.html"),
        ("a cause elsewhere that is searched for by its word", "causes/elsewhere.html"),
        ("a cause elsewhere that its clauses show", "causes/shown.html"),
        ("what changes", "upgrade/legacy_pmap-0.8.0--new_pmap-0.9.0.html#raises"),
        ("a figure of memory", "clauses/donation.a.html"),
        ("the matrix", "matrix/donation.html"),
    ],
)
def test_it_leads_to(what: str, address: str, page: str) -> None:
    assert f"../{address}" in links_in(tree(page)), what


@pytest.mark.parametrize(
    ("what", "name"), [("another cause", "unrelated"), ("another claim", "migrate-pmap.errors")]
)
def test_what_is_not_of_it_is_not_there(what: str, name: str, page: str) -> None:
    assert name not in page, what


def test_each_of_its_links_leads_to_a_page_of_the_site_and_a_place_on_it(
    page: str, site: dict[str, str]
) -> None:
    for tag, attrs in Tags(page).tags:
        path, _, place = (attrs.get("href") or "").partition("#")
        if tag == "a" and path.startswith("../"):
            target_page = site[path.removeprefix("../")]
            assert not place or place in Tags(target_page).attributes("id"), (path, place)


def test_a_reader_finds_it_from_the_first_page_and_by_search(
    site: dict[str, str], results: Results
) -> None:
    assert PAGE in links_in(tree(site["index.html"]))
    [one] = [e for e in entries(asked(results), ()) if e.href == PAGE]
    assert "donate" in one.tags.split(" · ")


def test_what_is_timed_is_told_once_however_many_checks_it_illustrates() -> None:
    shared = timing(OF_DONATION, OF_LOOPS, target="jax==0.9.0", topology="1x8")
    times = section(render(results_of(*records(), shared))[PAGE], "times")
    (measured,) = (one for one in times.iter("details") if "x[0]" in text_in(one[0]))
    assert text_in(measured).count("new pmap on 1x8, index: ") == 1
    assert {"../clauses/donation.a.html", "../clauses/idioms.loop.html"} <= set(links_in(times))


def test_patterns_that_are_timed_beside_plain_jit_are_left_to_their_page() -> None:
    there = {"target": "jax==0.9.0", "topology": "1x8"}
    pattern = timing(OF_DONATION, timing="timing.pattern.loop", **there)
    times = section(
        render(results_of(*records(), timing(OF_DONATION, **there), pattern))[PAGE], "times"
    )
    assert len([*times.iter("details")]) == 1
    assert "../jit.html" in links_in(times)


def test_results_without_legacy_pmap_say_that_nothing_is_compared() -> None:
    alone = [
        target("0.9.0"),
        claim("migrate-pmap.given"),
        clause(OF_DONATION, section="donation", claim="migrate-pmap.given"),
        cell(OF_DONATION, target="jax==0.9.0", implementation="new_pmap"),
    ]
    site = render(results_of(*alone))
    assert not [path for path in site if path.startswith("upgrade/")]
    assert "no legacy pmap" in site[PAGE]


def test_a_subject_links_the_page_of_gradients_where_one_was_taken() -> None:
    taken = clause("rewriting.gradients.own.stacked", section="rewriting")
    records_ = [*records(), taken, ran("rewriting.gradients.own.stacked", TO, FINE)]

    def linked(some: list[Record]) -> bool:
        return "../gradients.html" in links_in(tree(render(results_of(*some))[PAGE]))

    assert linked(records_)
    assert not linked(records())
