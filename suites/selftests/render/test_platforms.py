"""Results of a second platform: beside the first's, and in no page about versions."""

from __future__ import annotations

from collections.abc import Sequence

from records import Record, cause, claim, clause, deviation, target
from records import cell as cell_on
from site_pages import results_of, text_in, tree

from reports.analysis.effects.pairs import Effects, sides
from reports.render.site.build import render
from reports.render.site.marks import Mark, mark_of
from reports.render.site.platforms import PAGE, elsewhere, platforms_page, there

CPU = target("0.11.2")
CUDA = target("0.11.2", target="current", platform="cuda", device_kind="NVIDIA H200")
KNOWN = deviation(observed="^raised", why="It was removed.", cause="gone", kind="implementation")


def cells(topology: str, *verdicts: str, target: str = CPU["target"]) -> Sequence[Record]:
    """A cell of each of the clauses a, b, ... with this verdict; none where it is empty."""
    return [
        cell_on(
            f"errors.{letter}",
            verdict,
            target=target,
            topology=topology,
            deviation=KNOWN if verdict == "known deviation" else None,
        )
        for letter, verdict in zip("abcd", verdicts, strict=False)
        if verdict
    ]


def recorded(*cuda: str) -> Sequence[Record]:
    """The records of four clauses on CPU, and of the same on one CUDA device."""
    clauses = [claim("migrate-pmap.errors"), cause("gone")]
    clauses += [clause(f"errors.{one}", topologies=["1x8", "2x2"]) for one in "abcd"]
    on_cpu = cells("1x8", "conforms", "known deviation", "conforms", "")
    several = cells("2x2", "conforms", "conforms", "conforms", "conforms")
    return [CPU, *clauses, *on_cpu, *several, CUDA, *cells("1x1", *cuda, target="current")]


def test_a_platform_is_shown_beside_the_first() -> None:
    results = results_of(*recorded("conforms", "known deviation", "known deviation", "conforms"))
    assert results.platforms == ("cpu", "cuda")
    (view,) = platforms_page(Effects(results)).platforms
    assert (view.tests, view.conforming, view.known, view.left_out) == (4, 2, 2, 0)
    # c raises on CUDA alone; of d no cell ran in one process on CPU.
    assert [one.key.clause for one in view.different] == ["errors.c"]
    assert (view.alike, view.alone) == (2, 1)


def test_the_page_names_what_differs_and_the_devices() -> None:
    results = results_of(*recorded("conforms", "known deviation", "known deviation"))
    site = render(results)
    text = text_in(tree(site[PAGE]))
    assert "CUDA, JAX 0.11.2, NVIDIA H200" in text
    assert "2 of these results are the same, 1 differs." in text
    assert "some also ran on CUDA, on one device." in text_in(tree(site["index.html"]))
    assert PAGE in site["index.html"]
    assert PAGE in site["unknown.html"]


def test_an_upgrade_says_what_ran_on_other_platforms() -> None:
    few = "On CUDA, few tests ran (JAX 0.11.2)"
    assert elsewhere(results_of(*recorded("conforms"))) == f"{few}, with one device only"
    more = cells("1x2", "conforms", target="current")
    assert elsewhere(results_of(*recorded("conforms"), *more)) == few
    assert elsewhere(results_of(CPU, claim("migrate-pmap.errors"))) == ""


def test_of_several_topologies_the_result_that_is_alike_is_shown() -> None:
    """The first of them ended otherwise."""
    others = cells("1x2", "known deviation")
    results = results_of(*recorded("known deviation"), *others)
    (view,) = platforms_page(Effects(results)).platforms
    (one,) = view.results
    assert view.different == ()
    assert [mark_of(other.verdict) for other in one.others] == [Mark.RIGHT, Mark.WRONG]
    assert one.other is one.mark is Mark.WRONG


def test_tests_about_several_processes_that_ran_in_one_say_so() -> None:
    name = "multi_controller.a"
    here = [clause(name, topologies=["1x8"]), cell_on(name, "conforms", target=CPU["target"])]
    there = cell_on(name, "conforms", target="current", topology="1x1")
    site = render(results_of(*recorded("conforms"), *here, there))
    (errors, several) = (text_in(one) for one in tree(site[PAGE]).iter("summary"))
    assert errors == "errors: 1 result"
    assert several == "several processes: 1 result of tests that run in one process too"


def test_a_version_on_another_platform_is_no_version_of_its_own() -> None:
    effects = Effects(results_of(*recorded("conforms", "conforms", "conforms", "conforms")))
    assert {one.target.platform for one in sides(effects.results)} == {"cpu"}
    assert effects.results.topologies == ("1x8", "2x2")
    assert set(effects.results.labels.values()) == {"jax 0.11.2"}
    assert len(effects.every.outcomes) == len(effects.results.outcomes) + 4


def test_one_platform_has_no_such_page() -> None:
    results = results_of(*recorded())
    assert not there(results)
    assert PAGE not in render(results)


def test_implementations_that_end_alike_share_a_row() -> None:
    """Under shard_map, b is right on CPU and on CUDA; under new pmap on neither."""
    both = {CPU["target"]: "1x8", CUDA["target"]: "1x1"}
    of_shard_map = [
        cell_on(f"errors.{letter}", "conforms", target=on, topology=at, implementation="shard_map")
        for on, at in both.items()
        for letter in "ab"
    ]
    records = recorded("conforms", "known deviation")
    (view,) = platforms_page(Effects(results_of(*records, *of_shard_map))).platforms

    (section,) = view.sections
    assert [(row.first.key.clause, row.implementations) for row in section.rows] == [
        ("errors.a", ("new_pmap", "shard_map")),
        ("errors.b", ("new_pmap",)),
        ("errors.b", ("shard_map",)),
    ]
