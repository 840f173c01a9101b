"""The page of pmap inside other transformations: what each version does, by kind of topology."""

from __future__ import annotations

from records import Record, cause, deviation, finding, returned
from site_pages import links_in, tree
from two_sides import FAILS, FINE, TO, program, ran, read

from reports.analysis.effects.pairs import Effects
from reports.render.site import inside, question_pages
from reports.render.site.build import render
from reports.render.site.inside import InsideCell, InsidePage

WRONG = finding("same shape, wrong values: [2.]", "value")
SPANS = "transformed-map-spans-one-process"


def page(*more: Record) -> InsidePage:
    """What is right under jit in one process, and wrong in several; half of scan raises."""
    entry = deviation(cause=SPANS)
    wrong = {"verdict": "known deviation", "deviation": entry, "findings": [WRONG]}
    several = "multi_controller.map.jit.psum"
    cells = [
        ran("silences.of-map.jit", TO, FINE),
        ran(several, "legacy_pmap@0.8.0", FINE, topology="2x2"),
        ran(several, TO, returned([2.0]), topology="2x2", **wrong),
        ran("silences.of-map.scan", TO, FAILS),
        ran("silences.of-map.while", TO, FINE),
        *more,
    ]
    clauses = [program(id) for id in dict.fromkeys(one["clause"] for one in cells)]
    return inside.inside_page(Effects(read(*clauses, cause(SPANS), *cells)))


def test_one_process_and_several_have_their_own_answer() -> None:
    one, several = page().tables
    (transform, jit), (_, scan) = (
        (row.transform, row.cells[-1]) for row in one.rows if row.implementation == "new_pmap"
    )

    assert (transform, jit.says) == ("jax.jit", "works")
    assert scan == InsideCell(
        "0.9.0", "error", scan.css, "1 of 2 tests work, not “Title of silences.of-map.scan”"
    )
    says = {row.implementation: [cell.says for cell in row.cells] for row in several.rows}
    assert says == {"legacy_pmap": ["works", "not run"], "new_pmap": ["not run", "wrong values"]}
    assert one.answer.startswith("In part. New pmap on JAX 0.9.0")
    assert several.answer == "No. New pmap on JAX 0.9.0: wrong values inside jax.jit."


def test_a_version_without_an_implementation_lacks_it_for_every_test() -> None:
    """Also for those that were not run there."""
    gone = ran("silences.of-map.while", "legacy_pmap@0.9.0", verdict="removed", observations=[])
    _, several = page(gone).tables
    says = {row.implementation: [cell.says for cell in row.cells] for row in several.rows}

    assert says["legacy_pmap"] == ["works", "removed"]


def test_the_first_page_asks_what_its_site_answers() -> None:
    there, without = (
        read(program(id), ran(id, TO, FINE)) for id in ("silences.of-map.jit", "errors.a")
    )
    asked = {link.href for link in question_pages.asked(there)}
    assert {inside.PAGE, "docs/run-it-yourself.html"} <= asked
    assert {link.href for link in question_pages.asked(without)} == asked - {inside.PAGE}
    home = tree(render(there)["index.html"])
    assert asked <= set(links_in(home))


def test_without_its_clauses_there_is_no_page() -> None:
    effects = Effects(read(program("errors.a"), ran("errors.a", TO, FINE)))
    assert not inside.there(effects.results)
    assert list(inside.pages(effects)) == []
