"""The page of hazards: what is new in a version, what the newest has, and how one filters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from recorded_steps import finding, returned
from sample_results import Record, cause, claim, deviation, target
from site_pages import Tags, loaded
from two_sides import program, ran

from reports.render.site.build import render

VERSIONS = ("0.8.0", "0.9.0", "0.10.0")
WRONG = finding("first call", "same shape, wrong values: [2.]", "value")


def shown(id: str, slug: str, *where: str, **of_cause: Any) -> list[Record]:
    """A program under the new pmap in all versions that gives wrong numbers in some."""
    entry = deviation(cause=slug)
    return [
        cause(slug, **of_cause),
        program(id),
        *(
            ran(
                id,
                f"new_pmap@{jax}",
                returned(2.0),
                verdict="known deviation",
                findings=[WRONG],
                deviation=entry,
            )
            if jax in where
            else ran(id, f"new_pmap@{jax}", returned(1.0))
            for jax in VERSIONS
        ),
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    records = [
        *map(target, VERSIONS),
        claim("migrate-pmap.errors"),
        *shown("errors.a", "always", *VERSIONS, edit="Do that.", remedies=["errors.fix"]),
        program("errors.fix"),
        ran("errors.fix", "new_pmap@0.9.0", returned(1.0)),
        ran("errors.fix", "new_pmap@0.10.0", returned(2.0), verdict="known deviation"),
        cause("stuck"),
        program("errors.job"),
        ran(
            "errors.job",
            "jax@0.9.0",
            returned(name="process 0") | {"extra": {"text": "hangs | made"}},
            verdict="known deviation",
            findings=[finding("process 0", "hangs | made", "note")],
            deviation=deviation(cause="stuck"),
        ),
        *shown("errors.b", "since", "0.9.0", "0.10.0"),
        *shown("errors.c", "once", "0.8.0", "0.9.0"),
        *shown("errors.d", "back", "0.8.0", "0.10.0"),
    ]
    folder: Path = tmp_path_factory.mktemp("hazards")
    return render(loaded(folder, records))


@pytest.fixture(scope="module")
def page(site: dict[str, str]) -> str:
    return site["hazards.html"]


def line(page: str, jax: str) -> str:
    table = page[page.index('id="new"') :].partition("</table>")[0]
    (found,) = [row for row in table.split("<tr>") if f"versions/{jax}.html" in row]
    return Tags(found).text


def card(page: str, slug: str) -> str:
    return page[page.index(f'id="wrong-numbers-{slug}"') :].partition("</details>")[0]


def test_a_version_has_what_ran_without_it_in_the_one_before(page: str) -> None:
    newest, middle, first = (line(page, jax) for jax in reversed(VERSIONS))

    assert "Title of back new pmap" in " ".join(newest.split())
    assert "Title of since" not in newest
    assert "Title of since" in middle
    assert "the first tested" in first
    counts = [
        re.findall(r'class="n">(\d+)<', row) for row in page.split("<tr>") if "versions/" in row
    ]
    assert [one for one in counts if one] == [["3"], ["4"], ["3"]]


def test_the_newest_version_stands_first_and_what_it_has_comes_first(page: str) -> None:
    heads = re.findall(r'<th scope="col">(0[^<]*)</th>', card(page, "always"))
    order = re.findall(r'<details [^>]*id="wrong-numbers-(\w+)"', page)

    assert heads == [*reversed(VERSIONS)]
    assert order[-1] == "once"
    assert "Not in 0.10.0" in card(page, "once")
    assert "New in 0.9.0 under new pmap" in card(page, "since")
    assert "Not in" not in card(page, "always")


def test_the_page_is_filtered_by_version_without_a_script(page: str) -> None:
    radios = re.findall(r'<input type="radio" name="jax" id="([^"]*)" value="([^"]*)"', page)
    classes = {
        slug: set(re.findall(r"in-\d+", page[: page.index(f'id="wrong-numbers-{slug}"')][-60:]))
        for slug in ("always", "since", "once", "back")
    }

    assert radios == [("in-all", "all"), ("in-1", "0.10.0"), ("in-2", "0.9.0"), ("in-3", "0.8.0")]
    assert classes == {
        "always": {"in-1", "in-2", "in-3"},
        "since": {"in-1", "in-2"},
        "once": {"in-2", "in-3"},
        "back": {"in-1", "in-3"},
    }


def test_a_version_says_what_averts_a_hazard_where_that_works(site: dict[str, str]) -> None:
    assert "hang: 1, wrong values: 3" in site["versions/0.9.0.html"]
    assert "Do that." in site["versions/0.9.0.html"].partition('id="hazards"')[2]
    assert "Do that." not in site["versions/0.10.0.html"].partition('id="hazards"')[2]


def test_a_process_of_a_job_that_hangs_is_a_hazard(page: str) -> None:
    hangs = page[page.index('id="hangs-stuck"') :].partition("</details>")[0]
    assert "hangs | made" in hangs
    assert "a job of its own" in hangs
    assert "1x8" not in hangs


def test_a_hazard_says_what_averts_it_in_the_newest_version_that_has_it(
    site: dict[str, str], page: str
) -> None:
    assert "No workaround is known." in card(page, "always")  # it fails in 0.10.0
    assert "Do that." in site["versions/0.9.0.html"]


def test_a_mistake_that_has_a_name_is_wrong_numbers_whatever_was_expected(tmp_path: Path) -> None:
    saw = "it is this process's part of its own data: returned [2.]"
    refused = finding("first call", saw, "error")
    records = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        cause("taken"),
        program("errors.a"),
        ran(
            "errors.a",
            "new_pmap@0.9.0",
            returned(2.0),
            verdict="known deviation",
            findings=[refused],
            deviation=deviation(cause="taken"),
        ),
    ]
    assert 'id="wrong-numbers-taken"' in render(loaded(tmp_path, records))["hazards.html"]
