"""The pages of effects: the first page, an upgrade, versions, hazards; what they say and link."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from reading_time import minutes_to_read
from records import (
    Record,
    cause,
    cell,
    claim,
    clause,
    deviation,
    finding,
    leaf,
    raised,
    returned,
    shows,
    target,
)
from sample_results import HOSTILE
from site_pages import (
    Tags,
    classed,
    goal,
    links_in,
    loaded,
    part,
    section,
    shared_lines,
    text_in,
    tree,
    with_lines,
)
from two_sides import FAILS, FINE, FROM, HEAD, TO, changed, known, program, ran, read

from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.plan import MOST_LIKELY
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.effects.upgrade import upgrade
from reports.analysis.libraries import load_libraries
from reports.render.site.build import render
from reports.render.site.shared_lines import add as add_lines
from reports.render.site.text import effect_css, parted, plain
from reports.render.site.upgrades import LibraryChange
from reports.render.text.upgrade import as_text

UPGRADE = "upgrade/legacy_pmap-0.8.0--new_pmap-0.9.0.html"
WRONG = finding("same shape, wrong values: [2.]", "value")
MOST_MINUTES = 3.0
NO_HELP = finding("raised ValueError: no")


def started(implementation: str, jax: str, command: str) -> Record:
    """Return what a known issue's program shows under an implementation, and its command line."""
    return shows(implementation, "seen", jax=jax, commands={implementation: command})


RECORDS: list[Record] = [
    *HEAD,
    cause(
        "one-cause",
        program="import jax\nprint(jax.pmap)\n",
        remedies=["errors.fix"],
        shows=[
            started("legacy_pmap", "<0.9", "old python one-cause.py"),
            started("new_pmap", "<0.9", "early python one-cause.py"),
            started("new_pmap", ">=0.9", "new python one-cause.py"),
        ],
    ),
    *known("errors.a", "one-cause", FAILS, "2x2"),
    program("errors.fix", fixes="errors.a", title="Use `device_put`"),
    ran("errors.fix", TO, FINE, topology="2x2"),
    *changed("errors.b", raised("KeyError", "i"), title="The second thing"),
    *changed("errors.c", FINE),
    ran("errors.c", "new_pmap@0.8.0", FINE),
    program("errors.wrong"),
    ran("errors.wrong", TO, returned([2.0]), verdict="deviates", findings=[WRONG]),
    ran("errors.wrong", "new_pmap@0.8.0", returned([1.0])),
    program("errors.useless", fixes="errors.a", title="Never a remedy"),
    *(
        ran("errors.useless", side, FAILS, verdict="deviates", findings=[NO_HELP])
        for side in ("new_pmap@0.8.0", TO)
    ),
    program("errors.dies"),
    cell(
        "errors.dies",
        "crashed",
        implementation="legacy_pmap",
        target="jax==0.8.0",
        topology="1x8",
        observations=[],
        deviation=deviation(why="A call kills the process. It is known."),
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return with_lines(render(loaded(tmp_path_factory.mktemp("effects"), RECORDS)))


def test_a_cause_says_how_its_program_is_started_in_each_version(site: dict[str, str]) -> None:
    commands = [text_in(one) for one in tree(site["causes/one-cause.html"]).iter("code")]
    assert [one for one in commands if one.endswith("one-cause.py") and " " in one] == [
        f"{before} python one-cause.py" for before in ("old", "early", "new")
    ]


def test_every_sensible_pair_has_a_page_and_no_other(site: dict[str, str]) -> None:
    assert sorted(path for path in site if path.startswith("upgrade/")) == [
        "upgrade/legacy_pmap-0.8.0--new_pmap-0.8.0.html",
        UPGRADE,
        "upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html",
    ]


def test_the_first_page_links_every_pair_without_a_script(site: dict[str, str]) -> None:
    links = Tags(site["index.html"]).attributes("href")

    assert {path for path in site if path.startswith("upgrade/")} <= set(links)


def test_the_first_page_says_on_what_it_was_measured_and_on_what_not(site: dict[str, str]) -> None:
    measured, _, not_yet = text_in(tree(site["index.html"])).partition("No test ran on")

    assert measured.rpartition("The tests ran on ")[2].startswith("CPU, ")
    assert not_yet.startswith(" CUDA and TPU ")


def test_the_first_page_shows_known_issues_by_version(site: dict[str, str]) -> None:
    (grid,) = classed(tree(site["index.html"]), "of-pmap")

    (row,) = (one for one in grid.iter("tr") if "causes/one-cause.html" in links_in(one))
    cells = list(row.iter("td"))
    assert [one.get("class") for one in cells] == ["g g-none", "g e-raises"]
    assert "several processes" in text_in(cells[1])


def test_the_first_page_says_which_pmap_is_the_default_where(site: dict[str, str]) -> None:
    (timeline,) = classed(tree(site["index.html"]), "timeline")

    assert [(one.get("data-jax"), text_in(one)) for one in timeline.iter("td")] == [
        ("0.8.0", "optional"),
        ("0.9.0", "removed"),
        ("0.8.0", "default"),
        ("0.9.0", "only"),
    ]


def test_the_choices_lead_to_the_upgrade_of_what_runs_by_default(site: dict[str, str]) -> None:
    rows = [
        json.loads(line.rstrip(",")) for line in site["site.js"].splitlines() if line[:2] == '["'
    ]

    assert ["legacy", "0.8.0", "0.9.0", UPGRADE] in rows
    assert ["pmap", "0.8.0", "0.9.0", "upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"] in rows
    for _, _, _, path in rows:
        assert path in site


def test_an_upgrade_tells_edits_first_then_what_is_silent_then_the_rest(
    site: dict[str, str],
) -> None:
    page = tree(site[UPGRADE])

    heading = text_in(next(page.iter("h1")))
    assert re.findall(r"(?:legacy|new) pmap|\d[\d.]+", heading) == [
        *("legacy pmap", "0.8.0", "new pmap", "0.9.0"),
    ]
    assert "1 of 3" in text_in(page)
    ids = [one.get("id") for one in page.iter()]
    places = [ids.index(one) for one in ("edits", "silently", "all", "raises")]
    assert places == sorted(places)
    group = part(page, "raises")
    assert group.tag == "details"
    (row,) = (one for one in group.iter("li") if "../causes/one-cause.html" in links_in(one))
    assert text_in(row).startswith("Title of one-cause 1 test on 2x2")


def test_a_line_of_several_pages_is_stored_once_and_pages_name_it(tmp_path: Path) -> None:
    site = render(loaded(tmp_path, RECORDS))
    lines = shared_lines(site)
    named = {
        path: re.findall(r'data-lines="?([^">]*)', text)
        for path, text in site.items()
        if path.startswith("upgrade/")
    }

    lists = set().union(*named.values())
    assert lists | {key for one in lists for key in lines[one].split()} == set(lines)
    assert len(set(lines.values())) == len(lines)
    assert len(lists) < sum(map(len, named.values()))
    listed = next(text for text in lines.values() if "1 test on 2x2" in text)
    assert not [path for path in named if listed in site[path]]
    assert "need JavaScript" in Tags(site[UPGRADE]).text


def test_two_lines_of_one_key_are_an_error() -> None:
    lines = {"key": "one"}
    add_lines(lines, {"key": "one", "other": "two"})
    assert lines == {"key": "one", "other": "two"}
    with pytest.raises(ValueError, match="key other"):
        add_lines(lines, {"other": "three"})


def test_what_improves_is_fixed_and_no_edit_is_missed_for_it(tmp_path: Path) -> None:
    ended = deviation(cause="ended")
    how = {"verdict": "known deviation", "deviation": ended}
    records = [
        *HEAD,
        cause("ended"),
        program("errors.a"),
        ran("errors.a", FROM, raised("StoreException", "Store occupied"), **how),
        ran("errors.a", TO, raised("ValueError", "as documented")),
    ]
    page = tree(with_lines(render(loaded(tmp_path, records)))[UPGRADE])

    assert "no-fix" not in {one.get("id") for one in page.iter()}
    assert "../causes/ended.html" in links_in(part(page, "repaired"))


def test_edits_for_code_that_raised_before_are_folded_apart(tmp_path: Path) -> None:
    records = [*HEAD, program("errors.fix"), ran("errors.fix", TO, FINE)]
    for slug, before in (("new-error", FINE), ("other-error", raised("KeyError", "before"))):
        records += [cause(slug, edit=f"Avoid {slug}.", remedies=["errors.fix"])]
        records += [program(f"silences.{slug}", claim="pmap-silence.odd")]
        records += [ran(f"silences.{slug}", FROM, before)]
        how = {"verdict": "known deviation", "deviation": deviation(cause=slug)}
        records += [ran(f"silences.{slug}", TO, raised("ValueError", "now"), **how)]
    page = tree(with_lines(render(loaded(tmp_path, records)))[UPGRADE])

    folds = {text_in(next(one.iter("summary"))): text_in(one) for one in page.iter("details")}
    (fewer,) = (text for words, text in folds.items() if "for fewer programs" in words)
    (errors,) = (text for words, text in folds.items() if "raised an error before too" in words)
    assert ("Avoid new-error." in fewer, "Avoid other-error." in fewer) == (True, False)
    assert ("Avoid new-error." in errors, "Avoid other-error." in errors) == (False, True)


@pytest.mark.parametrize("size", [1, 40])
def test_an_upgrade_is_read_in_three_minutes(size: int, tmp_path: Path) -> None:
    slugs = [slug for one in rewrites().edits for slug in one.causes][:size]
    records = [*HEAD, program("errors.fix"), ran("errors.fix", TO, FINE)]
    for number, slug in enumerate(slugs):
        records += [cause(slug, edit=f"Change {slug}."), *known(f"idioms.c{number}", slug, FAILS)]
        wrong = returned([2.0])
        records += known(f"idioms.w{number}", slug, wrong)
    page = with_lines(render(loaded(tmp_path, records)))[UPGRADE]

    assert minutes_to_read(page) < MOST_MINUTES
    assert len(classed(tree(page), "edit")) >= min(size, 4)


def test_of_a_long_note_one_sentence_stands_unfolded(tmp_path: Path) -> None:
    slug = "device-put-stackers-gone"
    records = [*HEAD, program("errors.fix"), ran("errors.fix", TO, FINE)]
    records += [cause(slug, edit="Do that."), *known("errors.a", slug, FAILS)]
    page = with_lines(render(loaded(tmp_path, records)))[UPGRADE]
    (edit,) = classed(tree(page), "edit")
    first, _, rest = plain(rewrites().by_cause[slug].note).partition(". ")
    (why,) = edit.iter("details")
    assert rest in text_in(why)
    unfolded = text_in(edit).removesuffix(text_in(why))
    assert unfolded.endswith(f"{first}.")


def test_what_is_silent_says_that_some_tests_show_it_before_the_upgrade_too(tmp_path: Path) -> None:
    old, new = "new_pmap@0.8.0", "new_pmap@0.9.0"
    how = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause="old")}
    records = [
        *HEAD,
        cause("old"),
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        *(ran("errors.a", side, returned([2.0]), **how) for side in (old, new)),
    ]
    for name in ("errors.b", "errors.c"):
        records += [program(name), *(ran(name, side, FINE) for side in (FROM, old))]
        records.append(ran(name, new, returned([2.0]), **how))
    site = render(loaded(tmp_path, records))
    page = tree(with_lines(site)["upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"])
    said = "(on JAX 0.8.0 too, in fewer tests; no tested fix)"
    assert f"wrong values Title of old {said}" in text_in(section(page, "silently"))

    results = loaded(tmp_path, records)
    sides = (side(results, old, "--from"), side(results, new, "--to"))
    lines = as_text(results, upgrade(Effects(results), *sides)).splitlines()
    assert "  Title of old (wrong values; in more tests than before)" in lines


def test_an_error_that_other_tests_raised_before_says_so(tmp_path: Path) -> None:
    """It may stand under what is fixed, too, for the tests that no longer raise it."""
    old, new = "new_pmap@0.8.0", "new_pmap@0.9.0"
    how = {"verdict": "known deviation", "findings": [NO_HELP], "deviation": deviation(cause="old")}
    records = [*HEAD, cause("old"), cause("new")]
    raised_in = {"errors.a": (old,), "errors.b": (new,), "errors.c": (old, new)}
    for name, where in raised_in.items():
        records += [program(name), ran(name, FROM, FINE)]
        records += [
            ran(name, side, FAILS, **how) if side in where else ran(name, side, FINE)
            for side in (old, new)
        ]
    how["deviation"] = deviation(cause="new")
    records += [program("errors.d"), *(ran("errors.d", side, FINE) for side in (FROM, old))]
    records.append(ran("errors.d", new, FAILS, **how))
    site = render(loaded(tmp_path, records))
    page = tree(with_lines(site)["upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"])
    raises = text_in(section(page, "raises"))
    assert "Title of old (in more tests than before)" in raises
    assert "Title of new (" not in raises
    repaired = text_in(section(page, "repaired"))
    assert "Title of old (in some tests only)" in repaired
    assert "more do now" not in repaired.partition("Fixed, in whole or in part")[2]


def test_what_is_silent_and_has_no_fix_stands_once(tmp_path: Path) -> None:
    records = [*HEAD, cause("silent"), cause("loud")]
    records += known("errors.a", "silent", returned([2.0]))
    records += known("errors.b", "loud", FAILS)
    page = tree(with_lines(render(loaded(tmp_path, records)))[UPGRADE])
    assert "wrong values Title of silent (no tested fix)" in text_in(section(page, "silently"))
    others = part(page, "no-fix")
    assert text_in(others).startswith("Changes without a tested fix that are not listed above: 1")
    assert links_in(others) == ["../causes/loud.html"]


def test_a_milder_issue_of_both_sides_is_no_silent_difference(tmp_path: Path) -> None:
    old, new = "new_pmap@0.8.0", "new_pmap@0.9.0"
    how = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause="old")}
    moved = returned(leaf([1.0], sharding={"type": "SingleDeviceSharding", "devices": [0]}))
    records = [*HEAD, cause("old"), cause("new"), program("errors.a"), program("errors.b")]
    records += [ran("errors.a", side, FINE) for side in (FROM, old)]
    records += [ran("errors.a", new, moved, **how)]
    records += [ran("errors.b", FROM, FINE), ran("errors.b", new, moved, **how)]

    def silent(before: Record) -> str:
        site = render(loaded(tmp_path, [*records, before]))
        page = tree(with_lines(site)["upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"])
        return text_in(page).partition("What differs silently")[2].partition("Everything")[0]

    assert "Title of old" in silent(ran("errors.b", old, FINE))
    assert "Title of old" not in silent(ran("errors.b", old, moved, **how))


def test_what_the_old_side_did_not_run_is_no_change_if_it_has_the_same_issue(
    tmp_path: Path,
) -> None:
    old, new = "new_pmap@0.8.0", "new_pmap@0.9.0"
    how = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause="old")}
    wrong = returned([2.0])
    records = [*HEAD, cause("old"), program("errors.a"), program("errors.b")]
    records += [ran(name, FROM, FINE) for name in ("errors.a", "errors.b")]
    records += [ran(name, new, wrong, **how) for name in ("errors.a", "errors.b")]

    def changes(*before: Record) -> str:
        results = loaded(tmp_path, [*records, *before])
        sides = (side(results, old, "--from"), side(results, new, "--to"))
        return as_text(results, upgrade(Effects(results), *sides))

    assert "Title of old" in changes(ran("errors.a", old, FINE))
    assert "Title of old" not in changes(ran("errors.a", old, wrong, **how))
    milder = returned(leaf([1.0], sharding={"type": "SingleDeviceSharding", "devices": [0]}))
    assert "Title of old" in changes(ran("errors.a", old, milder, **how))


def test_the_silent_effects_of_one_issue_are_one_line(tmp_path: Path) -> None:
    how = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause="new")}
    moved = returned(leaf([1.0], sharding={"type": "SingleDeviceSharding", "devices": [0]}))
    records = [*HEAD, cause("new"), program("errors.a"), program("errors.b")]
    records += [ran(name, FROM, FINE) for name in ("errors.a", "errors.b")]
    records += [ran("errors.a", TO, returned([2.0]), **how), ran("errors.b", TO, moved, **how)]
    results, text = loaded(tmp_path, records), "Title of new"

    page = tree(with_lines(render(results))[UPGRADE])
    shown = text_in(page).partition("What differs silently")[2].partition("Everything")[0]
    assert shown.count(text) == 1
    assert f"{text} (also different sharding" in shown

    sides = (side(results, FROM, "--from"), side(results, TO, "--to"))
    lines = as_text(results, upgrade(Effects(results), *sides)).splitlines()
    at = lines.index("What differs silently: 1")
    assert lines[at + 1].strip().startswith(f"{text} (wrong values, different sharding")


def test_what_is_silent_says_that_most_tests_raised_before(tmp_path: Path) -> None:
    old, new = "new_pmap@0.8.0", "new_pmap@0.9.0"
    how = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause="new")}
    records = [*HEAD, cause("new")]
    for name, before in (("a", FINE), ("b", FAILS), ("c", FAILS)):
        records += [program(f"errors.{name}"), ran(f"errors.{name}", FROM, FINE)]
        records.append(ran(f"errors.{name}", old, before))
        records.append(ran(f"errors.{name}", new, returned([2.0]), **how))
    page = tree(render(loaded(tmp_path, records))["upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"])
    said = (
        "wrong values Title of new (on JAX 0.8.0 such code mostly raised an error; no tested fix)"
    )
    assert said in text_in(section(page, "silently"))


def test_what_raises_the_expected_error_now_is_fixed_and_says_so(tmp_path: Path) -> None:
    raises = {"verdict": "known deviation", "deviation": deviation(cause="unclear")}
    records = [
        *HEAD,
        cause("unclear"),
        program("errors.a"),
        ran("errors.a", FROM, FAILS),
        ran("errors.a", "new_pmap@0.8.0", raised("AssertionError", ""), **raises),
        ran("errors.a", "new_pmap@0.9.0", FAILS),
    ]
    site = with_lines(render(loaded(tmp_path, records)))
    page = tree(site["upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"])
    assert "Title of unclear (its tests raise the expected error now)" in text_in(page)


def test_what_ended_says_that_another_issue_is_in_its_place(tmp_path: Path) -> None:
    old, new = "new_pmap@0.8.0", "new_pmap@0.9.0"
    raises = {"verdict": "known deviation", "deviation": deviation(cause="ended")}
    wrong = {"verdict": "known deviation", "deviation": deviation(cause="new"), "findings": [WRONG]}
    records = [*HEAD, cause("ended"), cause("new")]
    for name in ("errors.a", "errors.b", "errors.c"):
        records += [program(name), ran(name, FROM, FINE), ran(name, old, FAILS, **raises)]
        records.append(
            ran(name, new, FINE) if name == "errors.a" else ran(name, new, returned([2.0]), **wrong)
        )
    site = with_lines(render(loaded(tmp_path, records)))
    page = tree(site["upgrade/new_pmap-0.8.0--new_pmap-0.9.0.html"])
    note = "not fixed for some of its tests: wrong values now, by “Title of new”"
    assert f"Title of ended ({note})" in text_in(page)


def test_a_cause_lists_its_checks_with_their_marks(site: dict[str, str]) -> None:
    page = tree(site["causes/one-cause.html"])
    checks = [one for one in page.iter("li") if "../clauses/errors.a.html" in links_in(one)]

    assert [text_in(one) for one in checks] == ["✗ Title of errors.a"]


def test_a_cause_tells_its_remedies_those_that_work_first(site: dict[str, str]) -> None:
    remedies = classed(tree(site["causes/one-cause.html"]), "remedies")

    assert [links_in(one) for one in remedies] == [
        ["../clauses/errors.fix.html"],
        ["../clauses/errors.useless.html"],
    ]


def test_a_cause_shows_the_lines_before_and_after(tmp_path: Path) -> None:
    slug = "index-replicates-the-row"
    records = [*HEAD, cause(slug), *known("errors.a", slug, FAILS)]
    text = Tags(render(loaded(tmp_path, records))[f"causes/{slug}.html"]).text
    one = rewrites().by_cause[slug]

    assert text.index(one.before) < text.index(one.after)


def test_a_cause_says_what_it_does_for_each_kind_of_topology(site: dict[str, str]) -> None:
    page = tree(site["causes/one-cause.html"])
    (row,) = page.iterfind(".//tr[@data-implementation='new_pmap']")

    assert "several processes" in text_in(row)
    heads = [head.get("data-jax") for head in page.iterfind(".//table//th[@data-jax]")]
    classes = [cell.get("class") for cell in row.iterfind("td")]
    assert dict(zip(heads, classes, strict=True))["0.9.0"] == "g e-raises"


def test_a_cause_tells_what_to_edit_and_what_is_the_same_defect(tmp_path: Path) -> None:
    records = [
        *HEAD,
        cause("whole", edit="Put it there."),
        cause("part", edit="Put it here.", remedies=["errors.none"], part_of="whole"),
        *known("errors.a", "whole", FAILS),
        *known("errors.b", "part", FAILS),
        cause("other", edit="Put it elsewhere.", remedies=["errors.fix"], part_of="whole"),
        *known("errors.c", "other", FAILS),
        program("errors.fix"),
        ran("errors.fix", TO, FINE),
        program("errors.none"),
        ran("errors.none", TO, FAILS, verdict="known deviation", findings=[NO_HELP]),
    ]
    pages = render(loaded(tmp_path, records))
    whole, piece = (tree(pages[f"causes/{slug}.html"]) for slug in ("whole", "part"))

    helps = text_in(whole)
    assert helps.index("Put it there.") < helps.index("Put it elsewhere.")
    assert "Put it here." not in text_in(piece)
    assert {"part.html", "other.html"} <= {one.rpartition("/")[2] for one in links_in(whole)}
    assert "whole.html" in {one.rpartition("/")[2] for one in links_in(piece)}


def test_what_happens_with_several_processes_can_be_shown_alone(site: dict[str, str]) -> None:
    rows = list(part(site[UPGRADE], "raises").iter("li"))
    several, one = (
        next(row for row in rows if name in links_in(row)[0]) for name in ("one-cause", "errors.b")
    )

    assert (several.get("class"), one.get("class")) == ("only-several", "only-one")


def test_counts_are_of_what_is_shown(site: dict[str, str]) -> None:
    summary = part(site[UPGRADE], "raises").find("summary")

    for places, count in (("for-all", "2"), ("for-one", "1"), ("for-several", "1")):
        (shown,) = classed(summary, places)
        assert re.findall(r"\d+", text_in(shown)) == [count]


def test_edits_say_what_they_avert_and_what_no_edit_is_known_for(site: dict[str, str]) -> None:
    page = tree(site[UPGRADE])
    (edit,) = classed(section(page, "edits"), "edit")

    assert "“Use device_put”" in text_in(edit)
    assert "several processes" in text_in(edit)
    assert edit.get("class") == "edit only-several"
    assert links_in(edit) == ["../causes/one-cause.html", "../clauses/errors.fix.html"]
    assert "../clauses/errors.b.html#c-new_pmap.1x8" in links_in(part(page, "no-fix"))


@pytest.mark.parametrize("size", [4, 40])
def test_the_terminal_tells_the_edits_and_silences_of_the_page_the_likely_first(
    size: int, tmp_path: Path
) -> None:
    slugs = [slug for one in rewrites().edits for slug in one.causes][:size]
    records = [*HEAD, program("errors.fix"), ran("errors.fix", TO, FINE)]
    for number, slug in enumerate(slugs):
        records += [cause(slug, edit=f"Change {slug}.", remedies=["errors.fix"])]
        records += known(f"idioms.c{number}", slug, FAILS)
        records += known(f"idioms.w{number}", slug, returned([2.0]))
    results = loaded(tmp_path, records)
    page = with_lines(render(results))[UPGRADE]
    effects = Effects(results)
    sides = (side(results, text, "--from") for text in (FROM, TO))
    lines = as_text(results, upgrade(effects, *sides), whole=True).splitlines()
    edits = [line for line in lines if re.match(r"  \S.* \(.*; .*\)$", line)]
    silent = lines[next(n for n, line in enumerate(lines) if line.startswith("What differs")) :]

    listed = section(page, "edits")
    titles = [text_in(one) for one in listed.iter("strong")]
    likely = {one for edit in classed(listed, "edit") for one in edit.iter("li")}
    others = [one for one in listed.iter("li") if one not in likely]
    likely_titles = set(titles)
    titles += [text_in(link) for one in others for link in [*one.iter("a")][:1]]
    printed = [line.strip().rpartition(" (")[0].replace("`", "") for line in edits]
    assert Counter(printed) == Counter(titles)
    assert likely_titles <= set(printed[:MOST_LIKELY])  # which has room for more than the page
    links = section(page, "silently").iter("a")
    issues = [text_in(one) for one in links if one.get("href", "").endswith(".html")]
    assert issues
    assert [line.strip().rpartition(" (")[0] for line in silent[1 : 1 + len(issues)]] == issues


def test_what_was_not_run_is_said(site: dict[str, str]) -> None:
    assert "not run under legacy_pmap@0.8.0" in text_in(part(site[UPGRADE], "not-measured"))


def test_a_version_tells_what_changed_against_the_one_before(site: dict[str, str]) -> None:
    new, first = (tree(site[f"versions/{jax}.html"]) for jax in ("0.9.0", "0.8.0"))

    assert "0.8.0" in text_in(classed(new, "lead")[0])
    assert "errors.wrong" in links_in(part(new, "new_pmap-wrong-numbers"))[0]
    assert "0.9.0" not in text_in(classed(first, "lead")[0])
    assert classed(section(first, "hazards"), "e-crashes")
    listed = [
        goal("versions.html", href)[0] for href in Tags(site["versions.html"]).attributes("href")
    ]
    assert {path for path in listed if path.startswith("versions/")} == {
        "versions/0.9.0.html",
        "versions/0.8.0.html",
    }


def test_a_remedy_that_never_worked_is_no_change_of_a_version(site: dict[str, str]) -> None:
    assert "Never a remedy" in site[UPGRADE]
    assert "Never a remedy" not in site["versions/0.9.0.html"]


def test_a_hazard_is_titled_by_what_is_known_of_it_not_by_what_is_expected(
    site: dict[str, str],
) -> None:
    (crash,) = classed(section(site["hazards.html"], "crashes"), "card")

    head = "A call kills the process SIGSEGV; legacy pmap: every version tested"
    assert text_in(crash.find("summary")) == head
    assert "It is known." in text_in(crash)


def test_hazards_tell_where_the_same_ran_without_and_where_it_was_not_run(
    site: dict[str, str],
) -> None:
    page = tree(site["hazards.html"])
    ids = [one.get("id") for one in page.iter()]
    row = next(section(page, "wrong-numbers").iter("tbody")).find("tr")

    assert ids.index("crashes") < ids.index("wrong-numbers")
    assert [text_in(one) for one in row] == ["new pmap", "1x8", "no"]
    assert classed(section(page, "hangs"), "card") == []


def test_a_version_shows_changes_first_and_where_its_hazards_show(site: dict[str, str]) -> None:
    page = tree(site["versions/0.9.0.html"])
    ids = [one.get("id") for one in page.iter()]
    assert ids.index("new_pmap") < ids.index("hazards")
    assert "new pmap 1x8" in text_in(section(page, "hazards"))


def test_ids_are_unique_and_links_within_a_page_lead_somewhere(site: dict[str, str]) -> None:
    for path in ("index.html", UPGRADE, "versions/0.9.0.html", "versions.html", "hazards.html"):
        tags = Tags(site[path])
        ids = tags.attributes("id")
        assert len(ids) == len(set(ids)), path
        for href in tags.attributes("href"):
            if href.startswith("#"):
                assert href[1:] in ids, f"{path}: {href}"


def test_hostile_texts_are_text_on_these_pages(tmp_path: Path) -> None:
    bad = changed("errors.h", raised("ValueError", HOSTILE), title=HOSTILE)
    pages = with_lines(render(loaded(tmp_path, [*HEAD, *bad])))

    for path in ("index.html", UPGRADE, "versions/0.9.0.html"):
        assert all(one.get("src") for one in tree(pages[path]).iter("script")), path
        assert "\x1b" not in pages[path], path


def test_results_of_one_side_have_a_first_page_without_a_chooser(tmp_path: Path) -> None:
    pages = render(
        loaded(
            tmp_path, [target(), claim("migrate-pmap.errors"), clause("errors.a"), cell("errors.a")]
        )
    )

    assert "data-chooser" not in pages["index.html"]
    assert not [path for path in pages if path.startswith("upgrade/")]


def test_every_effect_has_a_shape_of_its_own_in_the_style(site: dict[str, str]) -> None:
    shapes = dict(re.findall(r"[.](e-[a-z-]+)::before { content: ([^/;}]+)", site["style.css"]))

    assert all(effect.css == effect_css(effect.value) for effect in Effect)
    assert {effect.css for effect in Effect} == shapes.keys()
    assert len(set(shapes.values())) == len(Effect)


def test_a_clause_of_one_file_is_compared_with_that_of_another(tmp_path: Path) -> None:
    old = [
        target("0.8.0"),
        claim("migrate-pmap.errors"),
        program("errors.a"),
        ran("errors.a", FROM, FINE),
    ]
    new = [
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        program("errors.a"),
        ran("errors.a", TO, FAILS),
    ]

    pages = render(loaded(tmp_path, old, new))

    assert "New errors" in pages[UPGRADE]


def test_what_differs_silently_leads_to_the_issue(site: dict[str, str]) -> None:
    silent = section(site[UPGRADE], "silently")

    paths = [goal(UPGRADE, href)[0] for href in links_in(silent)]
    assert paths
    assert all(path in site for path in paths)
    assert classed(silent, "e-raises") == []


def test_a_cause_says_how_its_programs_fare_under_shard_map(tmp_path: Path) -> None:
    records = [
        *HEAD,
        cause("some"),
        *known("errors.a", "some", FAILS),
        *known("errors.b", "some", FAILS),
        ran("errors.a", "shard_map@0.9.0", FINE),
        ran("errors.b", "shard_map@0.9.0", FAILS, verdict="known deviation"),
        cause("none"),
        *known("errors.c", "none", FAILS),
        cause("both"),
        *known("errors.d", "both", FAILS),
        ran("errors.d", "shard_map@0.9.0", FINE),
        program("errors.e"),
        ran(
            "errors.e",
            "shard_map@0.9.0",
            FAILS,
            verdict="known deviation",
            deviation=deviation(cause="both"),
        ),
        cause("refused"),  # shard_map is right by the very error
        *known("errors.f", "refused", FAILS),
        program("errors.f", expected={"new_pmap": "returns it", "shard_map": "raises it"}),
        ran("errors.f", "shard_map@0.9.0", FAILS),
    ]
    pages = render(loaded(tmp_path, records))

    slugs = ("some", "none", "both", "refused")
    texts = [text_in(tree(pages[f"causes/{slug}.html"])) for slug in slugs]
    assert [re.findall(r"avoids this issue in (\d of \d) results", one) for one in texts] == [
        ["1 of 2"],
        [],
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Put it there first: `put(x)`.", "Put it there first"),
        ("Ask `devices(of=1)` of it; do not compute.", "Ask `devices(of=1)` of it"),
        ("Read `x[0]` (which moves).", "Read `x[0]`"),
        ("Pass `a: b`, and `f(x)`.", "Pass `a: b`, and `f(x)`."),
        ("An open ` is no code: so.", "An open ` is no code: so."),
    ],
)
def test_what_to_do_is_told_before_how(text: str, what: str) -> None:
    assert parted(text)[0] == what
    assert "".join(parted(text)) == text


@pytest.mark.parametrize(
    ("effect", "silent"),
    [("wrong numbers", True), ("other placement", True), ("raises", False), ("", False)],
)
def test_what_a_library_changes_is_silent_or_told(effect: str, silent: bool) -> None:
    assert LibraryChange(effect, "flax", "0.12.5", "It returns all.", "", "").silent is silent


def test_the_versions_in_which_a_library_changes_can_be_chosen() -> None:
    page = tree(render(read(*HEAD, *changed("errors.a", FAILS)))["index.html"])
    shown = {text_in(one) for one in page.iterfind(".//select[@name='flax']/option")}

    assert {one.since for one in rewrites().edits if one.library == "flax"} <= shown


def test_what_a_library_changes_silently_stands_with_what_differs_silently() -> None:
    if not load_libraries():
        pytest.skip("no library was examined")
    slug = "replicated-array-unreplicated-whole"
    records = [*HEAD, target("0.11.2"), cause(slug)]
    how = {"verdict": "known deviation", "findings": [WRONG], "deviation": deviation(cause=slug)}
    records += [
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        ran("errors.a", "new_pmap@0.8.0", FINE),
        ran("errors.a", "new_pmap@0.11.2", returned([2.0]), **how),
    ]
    site = with_lines(render(read(*records)))
    page = tree(site["upgrade/new_pmap-0.8.0--new_pmap-0.11.2.html"])
    assert "flax 0.12.5 or later: " in text_in(section(page, "silently"))


def test_the_script_knows_the_libraries_of_the_rewrites() -> None:
    script = resources.files("reports.render.site").joinpath("templates/site.js").read_text("utf-8")
    found = re.search(r"const LIBRARIES = (\[.*?\]);", script)
    assert found is not None
    assert json.loads(found[1]) == sorted({one.library for one in rewrites().edits} - {""})
