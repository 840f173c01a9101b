"""The page of hazards: what is new in a version, what the newest has, and how one filters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from records import Record, cause, claim, deviation, fault, finding, returned, target
from site_pages import classed, links_in, loaded, part, section, text_in, tree
from two_sides import FAILS, program, ran

from reports.render.site.build import render

VERSIONS = ("0.8.0", "0.9.0", "0.10.0")
WRONG = finding("same shape, wrong values: [2.]", "value")


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
                returned([2.0]),
                verdict="known deviation",
                findings=[WRONG],
                deviation=entry,
            )
            if jax in where
            else ran(id, f"new_pmap@{jax}", returned([1.0]))
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
        ran("errors.fix", "new_pmap@0.9.0", returned([1.0])),
        ran("errors.fix", "new_pmap@0.10.0", returned([2.0]), verdict="known deviation"),
        cause("stuck"),
        program("errors.job"),
        ran(
            "errors.job",
            "jax@0.9.0",
            returned(name="process 0") | {"extra": {"text": "hangs | made"}},
            verdict="known deviation",
            findings=[finding("hangs | made", "note", step="process 0")],
            deviation=deviation(cause="stuck"),
        ),
        *shown("errors.b", "since", "0.9.0", "0.10.0"),
        *shown("errors.c", "once", "0.8.0", "0.9.0"),
        *shown("errors.d", "back", "0.8.0", "0.10.0"),
        *shown("errors.e", "back-again", "0.9.0", part_of="back"),
    ]
    folder: Path = tmp_path_factory.mktemp("hazards")
    return render(loaded(folder, records))


@pytest.fixture(scope="module")
def page(site: dict[str, str]) -> Element:
    return tree(site["hazards.html"])


def card(page: Element, slug: str) -> Element:
    return part(page, f"wrong-numbers-{slug}")


def test_a_version_has_what_ran_without_it_in_the_one_before(page: Element) -> None:
    rows = list(section(page, "new").iter("tr"))[1:]
    newest, middle, first = map(links_in, rows)
    since = "hazards.html#wrong-numbers-since"
    assert "hazards.html#wrong-numbers-back" in newest
    assert "new pmap, again" in text_in(rows[0])
    assert "new pmap, again" not in text_in(rows[1])
    assert "hazards.html#wrong-numbers-back-again" in middle
    assert (since in newest, since in middle) == (False, True)
    assert first == ["versions/0.8.0.html"]
    assert [text_in(classed(row, "n")[0]) for row in rows] == ["3", "5", "3"]


def test_the_newest_version_stands_first_and_what_it_has_comes_first(page: Element) -> None:
    heads = [text_in(one) for one in card(page, "always").iter("th") if one.get("scope") == "col"]
    order = [one.get("id", "") for one in classed(page, "wrong-numbers")]

    assert heads[1:] == [*reversed(VERSIONS)]
    assert order[-1] == "wrong-numbers-once"
    assert "No wrong values any more in JAX 0.10.0" in text_in(card(page, "once"))
    assert "New in JAX 0.9.0" in text_in(card(page, "since"))
    assert "Back in JAX 0.10.0" in text_in(card(page, "back"))  # it is in 0.8.0 too
    assert "New in 0.10.0" not in text_in(card(page, "back"))
    assert "Not in" not in text_in(card(page, "always"))


@pytest.mark.parametrize(
    ("slug", "where"),
    [
        ("always", "new pmap: every version tested"),
        ("since", "new pmap: JAX 0.9.0 to 0.10.0"),
        ("back", "new pmap: JAX 0.8.0, 0.10.0"),
    ],
)
def test_a_folded_entry_says_where_it_shows(page: Element, slug: str, where: str) -> None:
    (head,) = card(page, slug).iter("summary")
    assert text_in(head).endswith(where)


def test_what_follows_a_library_shows_from_a_version_of_that_on(tmp_path: Path) -> None:
    slug = "replicated-array-unreplicated-whole"
    records = [*map(target, VERSIONS), claim("migrate-pmap.errors")]
    records += shown("errors.a", slug, "0.9.0", "0.10.0")
    one = card(tree(render(loaded(tmp_path, records))["hazards.html"]), slug)
    (head,) = one.iter("summary")

    assert text_in(head).endswith("new pmap: flax 0.12.5 and later")
    assert "versions of JAX without the issue ran with flax before 0.12.5" in text_in(one)


@pytest.mark.parametrize(
    ("title", "said"), [("It crashes", "SIGSEGV; "), ("It ends (SIGSEGV)", "")]
)
def test_a_crash_says_by_which_signal(title: str, said: str, tmp_path: Path) -> None:
    dead = ran(
        "errors.a",
        "new_pmap@0.9.0",
        returned([1.0]),
        verdict="known deviation",
        findings=[finding("crashed", "crash")],
        fault=fault("crashed"),
        deviation=deviation(cause="dead"),
    )
    records = [target("0.9.0"), claim("migrate-pmap.errors"), cause("dead", title=title)]
    page = tree(render(loaded(tmp_path, [*records, program("errors.a"), dead]))["hazards.html"])
    (head,) = part(page, "crashes-dead").iter("summary")
    assert text_in(head) == f"{title} {said}new pmap: every version tested"


# A job that hangs, which is expected of no map.
HANGS = {
    "verdict": "known deviation",
    "findings": [finding("hangs | made", "note", step="process 0")],
    "deviation": deviation(cause="stuck"),
}
JOB = returned(name="process 0") | {"extra": {"text": "hangs | made"}}


def test_what_a_program_without_a_map_shows_is_no_result_of_a_map(tmp_path: Path) -> None:
    """Of two versions the pmap ran in one: in the other it did neither show it nor not show it."""
    records = [
        target("0.9.0"),
        target("0.10.0"),
        claim("migrate-pmap.errors"),
        cause("stuck"),
        program("errors.job"),
        program("errors.map"),
        *(ran("errors.job", f"jax@{jax}", JOB, **HANGS) for jax in ("0.9.0", "0.10.0")),
        ran("errors.map", "new_pmap@0.10.0", JOB, **HANGS),
    ]
    page = tree(render(loaded(tmp_path, records))["hazards.html"])
    (head,) = part(page, "hangs-stuck").iter("summary")
    rows = [*part(page, "hangs-stuck").iter("tr")]
    assert text_in(head).endswith("new pmap, plain JAX: every version tested")
    assert [text_in(one) for one in rows[1]] == ["new pmap", "standalone job", ""]


def test_a_program_without_a_map_has_its_own_versions_in_the_head(tmp_path: Path) -> None:
    """Where they differ from those of the maps: else they are named together."""
    records = [
        *(target(jax) for jax in VERSIONS),
        claim("migrate-pmap.errors"),
        cause("stuck"),
        program("errors.job"),
        program("errors.map"),
        *(ran("errors.job", f"jax@{jax}", JOB, **HANGS) for jax in VERSIONS),
        ran("errors.map", "new_pmap@0.8.0", returned([1.0])),
        *(ran("errors.map", f"new_pmap@{jax}", JOB, **HANGS) for jax in VERSIONS[1:]),
    ]
    page = tree(render(loaded(tmp_path, records))["hazards.html"])
    (head,) = part(page, "hangs-stuck").iter("summary")
    where = "new pmap: JAX 0.9.0 to 0.10.0; plain JAX: every version tested"
    assert text_in(head) == f"Title of stuck {where}"


def test_the_page_leads_to_the_safest_version(page: Element) -> None:
    (head,) = classed(page, "page")
    assert "versions.html" in links_in(head)


def test_a_part_of_a_defect_stands_with_the_whole(page: Element) -> None:
    whole = card(page, "back")
    inner = card(page, "back-again")
    assert inner in list(whole.iter())
    assert "causes/back-again.html" in links_in(inner)
    assert "new pmap: JAX 0.9.0" in text_in(inner)
    assert [one.get("id") for one in classed(page, "card")].count("wrong-numbers-back-again") == 0


def test_a_part_under_another_implementation_has_a_row_in_the_table(tmp_path: Path) -> None:
    of_part = {"verdict": "known deviation", "deviation": deviation(cause="inner")}
    records = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        *shown("errors.a", "whole", "0.9.0")[:2],
        cause("inner", part_of="whole"),
        program("errors.b"),
        ran("errors.b", "jax@0.9.0", returned([2.0]), findings=[WRONG], **of_part),
        *[one for one in shown("errors.a", "whole", "0.9.0")[2:] if "0.9.0" in one["target"]],
    ]
    page = tree(render(loaded(tmp_path, records))["hazards.html"])
    (head,) = card(page, "whole").iter("summary")

    assert (
        "new pmap, plain JAX (another issue of the same defect): every version tested"
        in text_in(head)
    )


def test_the_page_is_filtered_by_version_without_a_script(page: Element) -> None:
    radios = [(one.get("id"), one.get("value")) for one in page.iterfind(".//input[@name='jax']")]
    classes = {
        slug: set(re.findall(r"in-\d+", card(page, slug).get("class", "")))
        for slug in ("always", "since", "once", "back")
    }

    assert radios == [("in-all", "all"), ("in-1", "0.10.0"), ("in-2", "0.9.0"), ("in-3", "0.8.0")]
    assert classes == {
        "always": {"in-1", "in-2", "in-3"},
        "since": {"in-1", "in-2"},
        "once": {"in-2", "in-3"},
        "back": {"in-1", "in-2", "in-3"},
    }


def test_a_version_says_what_averts_a_hazard_where_that_works(site: dict[str, str]) -> None:
    middle, newest = (
        section(site[f"versions/{jax}.html"], "hazards") for jax in ("0.9.0", "0.10.0")
    )
    assert [len(classed(middle, css)) for css in ("e-hangs", "e-wrong-numbers")] == [1, 4]
    assert "Do that." in text_in(middle)
    assert "Do that." not in text_in(newest)


def test_wrong_values_that_a_job_prints_are_a_hazard(tmp_path: Path) -> None:
    job = ran(
        "errors.printed",
        "jax@0.9.0",
        returned(name="process 0") | {"extra": {"text": "exit 0 | got 3.0"}},
        verdict="known deviation",
        findings=[finding("exit 0 | got 3.0", "note", step="process 0")],
        deviation=deviation(cause="max-meets-sum"),
    )
    records = [target("0.9.0"), claim("migrate-pmap.errors"), cause("max-meets-sum")]
    pages = render(loaded(tmp_path, [*records, program("errors.printed"), job]))

    assert "got 3.0" in text_in(part(tree(pages["hazards.html"]), "wrong-numbers-max-meets-sum"))


def test_a_process_of_a_job_that_hangs_is_a_hazard(page: Element) -> None:
    hangs = text_in(part(page, "hangs-stuck"))
    assert "hangs, after printing: made" in hangs
    assert "1x8" not in hangs


def test_a_job_of_several_processes_is_no_topology_of_one(tmp_path: Path) -> None:
    both = [returned(name=f"process {n}") | {"extra": {"text": "SIGABRT"}} for n in (0, 1)]
    ends = ran("errors.job", "jax@0.9.0", *both, verdict="known deviation")
    records = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        cause("lost"),
        program("errors.job"),
        ends | {"deviation": deviation(cause="lost")},
    ]
    page = tree(render(loaded(tmp_path, records))["causes/lost.html"])
    [shown] = [one for one in page.iter("table") if "standalone job is" in text_in(one)]

    assert [text_in(one) for one in shown.iter("td")] == ["standalone job", "0.9.0"]


def test_a_hazard_says_what_averts_it_in_the_newest_version_that_has_it(page: Element) -> None:
    text = text_in(card(page, "always"))  # it fails in 0.10.0
    assert "No workaround is known for the affected versions below" in text
    assert "For other versions or other effects of this known issue: Do that." in text


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("conforms", "Title of errors.fix (errors.fix)"), ("deviates", "No workaround is known.")],
)
def test_without_a_known_issue_what_fixes_the_program_averts_it_if_that_works(
    verdict: str, said: str, tmp_path: Path
) -> None:
    wrong = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause="")}
    records = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        program("errors.a"),
        program("errors.fix", fixes="errors.a"),
        ran("errors.a", "new_pmap@0.9.0", returned([2.0]), **wrong),
        ran("errors.fix", "new_pmap@0.9.0", returned([1.0]), verdict=verdict),
    ]
    page = tree(render(loaded(tmp_path, records))["hazards.html"])
    [found] = [one for one in page.iter("details") if one.get("id", "").startswith("wrong-num")]
    assert said in text_in(found)


@pytest.mark.parametrize("hangs", [True, False])
def test_an_error_in_every_process_is_a_fix_of_a_hang_alone(hangs: bool, tmp_path: Path) -> None:
    how = {"verdict": "known deviation", "deviation": deviation(cause="")}
    harm = (
        ran("errors.a", "new_pmap@0.9.0", fault=fault("hung"), **how)
        if hangs
        else ran("errors.a", "new_pmap@0.9.0", returned([2.0]), findings=[WRONG], **how)
    )
    expected = [finding("raised ValueError", "error", holds=True)]
    records = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        program("errors.a"),
        program("errors.fix", fixes="errors.a"),
        harm,
        ran("errors.fix", "new_pmap@0.9.0", FAILS, findings=expected),
    ]
    page = text_in(tree(render(loaded(tmp_path, records))["hazards.html"]))
    assert ("Title of errors.fix" in page) == hangs


def test_a_mistake_that_has_a_name_is_wrong_numbers_whatever_was_expected(tmp_path: Path) -> None:
    saw = "it is this process's part of its own data: returned [2.]"
    refused = finding(saw, "error")
    records = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        cause("taken"),
        program("errors.a"),
        ran(
            "errors.a",
            "new_pmap@0.9.0",
            returned([2.0]),
            verdict="known deviation",
            findings=[refused],
            deviation=deviation(cause="taken"),
        ),
    ]
    assert card(tree(render(loaded(tmp_path, records))["hazards.html"]), "taken") is not None
