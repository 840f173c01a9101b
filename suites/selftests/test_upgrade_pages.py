"""The pages of effects: the first page, an upgrade, versions, hazards; what they say and link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recorded_steps import finding, raised, returned
from sample_results import HOSTILE, Record, cause, cell, claim, clause, deviation, target
from site_pages import Tags, goal, loaded
from two_sides import FAILS, FINE, FROM, HEAD, TO, changed, known, program, ran

from reports.effects.effect import Effect
from reports.site.build import render
from reports.site.text import effect_css, parted

UPGRADE = "upgrade/legacy_pmap-0.8.0--new_pmap-0.9.0.html"
WRONG = finding("first call", "same shape, wrong values: [2.]", "value")
NO_HELP = finding("first call", "raised ValueError: no")


def shows(implementation: str, jax: str, command: str) -> Record:
    """What a cause's program shows under an implementation, and how it is started there."""
    return {
        "implementation": [implementation],
        "jax": jax,
        "topology": ["1x8"],
        "prints": "seen",
        "raises": "",
        "ends": "",
        "commands": {implementation: command},
    }


RECORDS: list[Record] = [
    *HEAD,
    cause(
        "one-cause",
        program="import jax\nprint(jax.pmap)\n",
        remedies=["errors.fix"],
        shows=[
            shows("legacy_pmap", "<0.9", "old python one-cause.py"),
            shows("new_pmap", "<0.9", "early python one-cause.py"),
            shows("new_pmap", ">=0.9", "new python one-cause.py"),
        ],
    ),
    *known("errors.a", "one-cause", FAILS, "2x2"),
    program("errors.fix", fixes="errors.a", title="Use `device_put`"),
    ran("errors.fix", TO, FINE, topology="2x2"),
    *changed("errors.b", raised("KeyError", "i"), title="The second thing"),
    *changed("errors.c", FINE),
    ran("errors.c", "new_pmap@0.8.0", FINE),
    program("errors.wrong"),
    ran("errors.wrong", TO, returned(2.0), verdict="deviates", findings=[WRONG]),
    ran("errors.wrong", "new_pmap@0.8.0", returned(1.0)),
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
    return render(loaded(tmp_path_factory.mktemp("effects"), RECORDS))


def test_a_program_is_started_as_at_the_side_that_one_moves_to(site: dict[str, str]) -> None:
    assert "<code>new python one-cause.py</code>" in site[UPGRADE]
    assert "old python" not in site[UPGRADE]
    assert "early python" not in site[UPGRADE]
    for command in ("old", "early", "new"):
        assert f"<code>{command} python one-cause.py</code>" in site["causes/one-cause.html"]


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
    said = "measured on cpu in clusters of real processes; nothing is measured on cuda and tpu yet."

    assert said in Tags(site["index.html"]).text


def test_the_first_page_tells_the_gravest_first_with_the_way_there(site: dict[str, str]) -> None:
    page = site["index.html"]
    worst = page[page.index('id="worst"') :]

    assert worst.index("wrong numbers") < worst.index("Title of one-cause")
    anchors = [href for href in Tags(worst).attributes("href") if href.startswith(f"{UPGRADE}#")]
    assert anchors
    for href in anchors:
        assert href.partition("#")[2] in Tags(site[UPGRADE]).attributes("id")


def test_an_upgrade_is_told_worst_first_with_program_remedy_place_and_evidence(
    site: dict[str, str],
) -> None:
    page = site[UPGRADE]
    text = Tags(page).text

    assert "From legacy pmap on jax 0.8.0 to new pmap on jax 0.9.0" in text
    assert page.index("Silently gives other numbers") < page.index("Raises now")
    cards = page[page.index("<article") :]
    entry = cards[cards.index("Title of one-cause") :]
    parts = (
        "JAX does this",
        "Do as in “Use <code>device_put</code>",
        "1 program on 2x2",
        "print(jax.pmap)",
        "What works instead",
        ">Use <code>device_put</code>",
        "works on 2x2",
        "Does not help",
        "Never a remedy",
        "does not work on 1x8",
    )
    entry = entry[entry.index("JAX does this") :]
    places = [entry.index(part) for part in (*parts, "errors.a.html")]
    assert places == sorted(places)
    assert "this is the new one alone" in text
    assert "1 of 3 programs do the same" in text


def test_a_cause_says_that_its_checks_are_what_is_expected(site: dict[str, str]) -> None:
    page = site["causes/one-cause.html"]
    listed = Tags(page[page.index("1 check in which it shows") :]).text

    assert "Each line is what is expected" in listed
    assert "✗ Title of errors.a" in " ".join(listed.split())


def test_a_cause_and_an_upgrade_s_entry_of_it_tell_the_same_remedies(site: dict[str, str]) -> None:
    card, cause_page = site[UPGRADE], site["causes/one-cause.html"]
    card = card[card.index("<article") :]
    card = card[card.index("Title of one-cause") :].partition("</article>")[0]

    def told(page: str) -> list[str]:
        links = Tags(page[page.lower().index("what works instead") :]).attributes("href")
        return [href for href in links if href.endswith(("fix.html", "useless.html"))]

    assert told(card) == told(cause_page)
    assert [href.rpartition("/")[2] for href in told(card)] == [
        "errors.fix.html",
        "errors.useless.html",
    ]
    assert "No remedy is known" not in cause_page


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
    whole, part = pages["causes/whole.html"], pages["causes/part.html"]

    assert "Put it there." in whole
    assert "Put it here." not in part
    assert "The same defect as: Title of part; Title of other" in " ".join(Tags(whole).text.split())
    helps = " ".join(Tags(whole).text.partition("What helps")[2].split())
    assert helps.startswith("Put it there.Title of other: Put it elsewhere.")
    assert "The same defect as: Title of whole" in Tags(part).text


def test_what_happens_with_several_processes_can_be_shown_alone(site: dict[str, str]) -> None:
    cards = [attrs["class"] or "" for tag, attrs in Tags(site[UPGRADE]).tags if tag == "article"]

    assert sorted("at-one" in one for one in cards) == [False, True, True, True]
    assert sorted("at-several" in one for one in cards) == [False, False, False, True]


def test_counts_are_of_what_is_shown(site: dict[str, str]) -> None:
    page = site[UPGRADE]
    lines = re.findall(r'<tr class="line ([^"]*)"><th scope="row"><a href="#([^"]*)"', page)
    raises = page[page.index('id="raises"') :].partition("</h2>")[0]

    assert ("at-one", "wrong-numbers") in lines
    assert ("at-one at-several", "raises") in lines
    assert 'for-all">2 causes, 2 programs<' in raises
    assert 'for-one">1 cause, 1 program with one process<' in raises
    assert 'for-several">1 cause, 1 program with several processes<' in raises


def test_edits_come_before_the_cards_and_lead_to_them(site: dict[str, str]) -> None:
    page = site[UPGRADE]
    listed = page[page.index('id="edits"') : page.index('id="no-fix"')]
    unknown = page[page.index('id="no-fix"') : page.index("<article")]

    assert "Do as in “Use <code>device_put</code>" in listed
    assert "With several processes" in Tags(listed).text
    assert 'class="edit line at-several"' in listed
    assert "errors.fix.html" in listed
    summary = listed[listed.index("<summary>") : listed.index("</summary>")]
    assert "raises" in Tags(summary).text  # what it averts is in sight, by what is behind a click
    assert "#raises-errors.b" in unknown
    assert "#raises-errors.b" not in listed
    ids = Tags(page[page.index("<article") :]).attributes("id")
    for part in (listed, unknown):
        anchors = [href for href in Tags(part).attributes("href") if href.startswith("#")]
        assert anchors
        assert {href[1:] for href in anchors} <= set(ids)


def test_what_was_not_run_is_said(site: dict[str, str]) -> None:
    assert "not run under legacy_pmap@0.8.0" in Tags(site[UPGRADE]).text


def test_a_version_tells_what_changed_against_the_one_before(site: dict[str, str]) -> None:
    new, first = site["versions/0.9.0.html"], site["versions/0.8.0.html"]

    assert "Against jax 0.8.0" in new
    assert "Silently gives other numbers" in new
    assert "The first version that was measured" in first
    assert "crashes" in first[first.index('id="hazards"') :]
    listed = [
        goal("versions.html", href)[0] for href in Tags(site["versions.html"]).attributes("href")
    ]
    assert [path for path in listed if path.startswith("versions/")] == [
        "versions/0.9.0.html",
        "versions/0.8.0.html",
    ]


def test_a_remedy_that_never_worked_is_no_change_of_a_version(site: dict[str, str]) -> None:
    assert "Never a remedy" in site[UPGRADE]
    assert "Never a remedy" not in site["versions/0.9.0.html"]


def test_a_hazard_is_titled_by_what_is_known_of_it_not_by_what_is_expected(
    site: dict[str, str],
) -> None:
    crashes = site["hazards.html"].split('id="hangs"')[0]

    assert "<h3>A call kills the process</h3>" in crashes
    assert "<p>It is known.</p>" in crashes


def test_hazards_tell_where_the_same_ran_without_and_where_it_was_not_run(
    site: dict[str, str],
) -> None:
    page = site["hazards.html"]
    wrong = page[page.index('id="wrong-numbers"') :]
    row = wrong[wrong.index('<th scope="row">new pmap') :].split("</tr>")[0]

    assert page.index('id="crashes"') < page.index('id="wrong-numbers"')
    assert ">no<" in row
    assert ">1x8<" in row
    assert "None was seen." in page[page.index('id="hangs"') : page.index('id="wrong-numbers"')]


def test_a_versions_hazards_come_first_and_say_where_they_show(site: dict[str, str]) -> None:
    page = site["versions/0.9.0.html"]
    listed = page[page.index('id="hazards"') : page.index('id="new_pmap"')]
    assert '<span class="dim small">new pmap 1x8' in listed


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
    pages = render(loaded(tmp_path, [*HEAD, *bad]))

    for path in ("index.html", UPGRADE, "versions/0.9.0.html"):
        assert "<script>alert" not in pages[path], path
        assert "\x1b" not in pages[path], path


def test_results_of_one_side_have_a_first_page_without_a_chooser(tmp_path: Path) -> None:
    pages = render(
        loaded(
            tmp_path, [target(), claim("migrate-pmap.errors"), clause("errors.a"), cell("errors.a")]
        )
    )

    assert "Which upgrade?" not in pages["index.html"]
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

    assert "Raises now" in pages[UPGRADE]


def test_what_differs_in_silence_is_a_list_that_leads_to_the_cards(site: dict[str, str]) -> None:
    page = site[UPGRADE]
    silent = page[page.index('id="silently"') :].partition("</section>")[0]

    anchors = [href.removeprefix("#") for href in Tags(silent).attributes("href")]
    assert anchors
    assert all(f'id="{anchor}"' in page.partition(silent)[2] for anchor in anchors)
    assert "raises" not in Tags(silent).text


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
    ]
    pages = render(loaded(tmp_path, records))

    said = "1 of the 2 of its cells that shard_map can run do as expected there"
    assert said in Tags(pages["causes/some.html"]).text
    assert "that shard_map can run" not in pages["causes/none.html"]


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
