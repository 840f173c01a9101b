"""The matrix, clause pages and causes: what happened in words, equal outcomes once, in bounds."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from records import (
    FIRST,
    SECOND,
    Record,
    cause,
    claim,
    clause,
    deviation,
    finding,
    observation,
    raised,
    returned,
    sample_step,
    shows,
    target,
    timing,
)
from records import cell as cell_of
from sample_results import HOSTILE, MARKUP, sample
from site_pages import Tags, classed, loaded, text_in, tree

from reports.analysis.effects.effect import Effect
from reports.analysis.effects.happened import happened
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.remedies import Help
from reports.render.site.build import Frame, environment, render
from reports.render.site.causes import causes
from reports.render.site.clauses import ClausePage, pages
from reports.render.site.columns import columns
from reports.render.site.evidence import observed_lines
from reports.render.site.marks import Mark
from reports.render.site.matrix import PartView, Section
from reports.render.site.matrix import pages as matrix_pages
from reports.render.site.observed import observed
from reports.render.site.page import MOST_BYTES, Page
from reports.store.results import Results

VERSIONS = ("0.8.0", "0.9.0", "0.10.0", "0.12.0.1")
LEGACY, PMAP, SHARD = "legacy_pmap", "new_pmap", "shard_map"
PAGE_BYTES = 150_000


def results_of(*records: Record) -> Results:
    with TemporaryDirectory() as folder:
        return loaded(Path(folder), list(records))


def head(*clauses: Record, versions: tuple[str, ...] = VERSIONS) -> list[Record]:
    return [*(target(one) for one in versions), claim("migrate-pmap.errors"), *clauses]


def cell(jax: str, implementation: str = PMAP, verdict: str = "conforms", **other: Any) -> Record:
    """A cell of errors.a on one process."""
    place = {"target": f"jax=={jax}", "implementation": implementation, "topology": "1x8"}
    return cell_of(other.pop("id", "errors.a"), verdict, **place | other)


def test_a_clause_without_its_program_says_how_to_print_it() -> None:
    shown, listed = clause("errors.a", topologies=["1x8"]), clause("errors.b", topologies=["1x8"])
    made = render(results_of(*head(shown, listed | {"source": ""}), cell("0.9.0")))
    command = "pmap-conformance show errors.b"
    pages = {id: tree(made[f"clauses/{id}.html"]) for id in ("errors.a", "errors.b")}
    assert command in text_in(pages["errors.b"])
    assert command.replace(".b", ".a") not in text_in(pages["errors.a"])


def stepped(*steps: Record) -> list[Record]:
    return [observation(*steps)]


def job(*texts: str) -> list[Record]:
    """The steps of a plain job: a process each, its end and what it printed."""
    return [
        sample_step() | {"name": f"process {number}", "extra": {"text": text}}
        for number, text in enumerate(texts)
    ]


A = clause("errors.a", topologies=["1x8"])
FAILS = stepped(raised(name=FIRST), raised(name=SECOND))
FAILS_AGAIN = stepped(sample_step(), raised(name=SECOND))
WORKS = stepped(sample_step(), sample_step(name=SECOND))


@pytest.mark.parametrize(
    ("name", "verdict", "other", "words"),
    [
        ("returns", "conforms", {"observations": WORKS}, "returns"),
        ("raises", "conforms", {"observations": FAILS}, "raises ValueError"),
        ("again", "conforms", {"observations": FAILS_AGAIN}, "raises ValueError, second call"),
        ("crashed", "crashed", {}, "crashes"),
        ("hung", "hung", {}, "hangs"),
        ("removed", "removed", {}, "gone"),
        ("not applicable", "not applicable", {}, "n/a"),
        ("nothing observed", "deviates", {"observations": [], "findings": []}, "deviates"),
        ("odd", "conforms", {"observations": [{"steps": 3}]}, "returns"),
        *(
            (
                f"other {'/'.join(codes)}",
                "deviates",
                {"observations": WORKS, "findings": [finding(code=code) for code in codes]},
                words,
            )
            for codes, words in (
                (["value"], "other numbers"),
                (["shape"], "other shape"),
                (["dtype"], "other dtype"),
                (["weak type"], "other weak type"),
                (["dtype", "value"], "other numbers"),
                (["sharding"], "returns"),
            )
        ),
        (
            "a plain job",
            "conforms",
            {"observations": stepped(*job("exit 0 | sum 3.0", "exit 0 | sum 3.0 | done"))},
            "exit 0: sum 3.0",
        ),
        (
            "a job of which a process dies",
            "conforms",
            {"observations": stepped(*job("exit 0 | sum 3.0", "SIGABRT"))},
            "SIGABRT",
        ),
        (
            "a remedy's error",
            "conforms",
            {"observations": stepped(raised(name="without the fix"), sample_step())},
            "returns",
        ),
    ],
)
def test_words(name: str, verdict: str, other: Record, words: str) -> None:
    results = results_of(*head(A), cell("0.9.0", verdict=verdict, **other))
    (outcome,) = results.outcomes.values()
    assert happened(outcome) == words, name


def page_of(*records: Record) -> ClausePage:
    results = results_of(*records)
    (view,) = (p.view for p in pages(Effects(results)) if p.view.clause.clause == "errors.a")
    assert isinstance(view, ClausePage)
    return view


def test_equal_outcomes_are_told_once_with_their_versions() -> None:
    page = page_of(
        *head(A),
        *(cell(one, observations=WORKS, reason="returned [1.]") for one in VERSIONS[:2]),
        *(cell(one, observations=FAILS, reason=f"no: {one}") for one in VERSIONS[2:]),
    )
    new = page.implementations[0]
    assert new.name == PMAP
    assert [(shown.words, shown.places) for shown in new.outcomes] == [
        ("raises ValueError", ("0.10.0 to 0.12.0.1 on 1x8",)),
        ("returns", ("0.8.0 to 0.9.0 on 1x8",)),
    ]


@pytest.mark.parametrize(
    ("slug", "told"), [("one-cause", ["It is so.", ""]), ("", ["It is so."] * 2)]
)
def test_why_is_told_once_of_a_known_issue(slug: str, told: list[str]) -> None:
    how = {"deviation": deviation(cause=slug, why="It is so."), "observations": FAILS}
    page = page_of(
        *head(A),
        cause("one-cause"),
        *(cell("0.9.0", one, "known deviation", **how) for one in (PMAP, SHARD)),
    )

    seen = [one for some in page.implementations for one in some.outcomes if not one.absent]
    assert [one.why for one in seen] == told
    assert all((one.cause is not None) == bool(slug) for one in seen)


def test_what_was_not_run_is_said_and_legacy_comes_last() -> None:
    page = page_of(
        *head(A),
        cell("0.9.0", LEGACY, observations=WORKS),
        cell("0.12.0.1", observations=WORKS),
    )
    assert [one.name for one in page.implementations] == [PMAP, SHARD, LEGACY]
    assert [shown.words for shown in page.implementations[0].outcomes] == ["returns", "not run"]
    assert page.implementations[0].outcomes[1].places == ("0.8.0 to 0.10.0 on 1x8",)


def test_the_difference_from_legacy_is_told() -> None:
    page = page_of(
        *head(A),
        cell("0.9.0", LEGACY, observations=WORKS),
        cell("0.12.0.1", observations=FAILS_AGAIN),
    )
    shown = page.implementations[0].outcomes[0]
    assert shown.shown is not None
    assert shown.shown.effect is Effect.RAISES
    assert shown.shown.second_call


def test_a_cell_is_found_by_its_anchor_wherever_it_is_told() -> None:
    site = render(results_of(*head(A), *(cell(one, observations=WORKS) for one in VERSIONS)))
    ids = Tags(site["clauses/errors.a.html"]).attributes("id")
    for implementation in (LEGACY, PMAP, SHARD):
        assert f"c-{implementation}.1x8" in ids


def test_times_stand_with_their_version() -> None:
    page = page_of(*head(A), cell("0.9.0"), timing("errors.a", topology="1x8"))
    ((where, lines),) = page.timings
    assert where == "0.9.0, new_pmap on 1x8"
    assert {"timing.index.4kib,", "1.58"} < set(lines[0].split())


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (
            "a long message",
            {"observations": stepped(raised(message="x" * 1_000_000))},
        ),
        (
            "a long log",
            {"observations": stepped(sample_step(logs=[{"message": "y" * 10**5}] * 30))},
        ),
        (
            "many processes",
            {"observations": [observation(process=p, extra=p) for p in range(64)]},
        ),
        ("a long reason", {"reason": "z " * 50_000}),
        ("hostile", {"reason": HOSTILE * 1_000}),
    ],
)
def test_a_page_stays_small(name: str, other: Record) -> None:
    implementations = (LEGACY, PMAP, SHARD)
    cells = [
        cell(jax, implementation, "deviates", **{"reason": f"{name} {'abcd'[n]}"} | other)
        for n, jax in enumerate(VERSIONS)
        for implementation in implementations[1:]
    ]
    site = render(results_of(*head(A), *cells))
    assert len(site["clauses/errors.a.html"].encode()) < PAGE_BYTES


def test_of_records_that_disagree_the_newest_is_shown() -> None:
    with TemporaryDirectory() as folder:
        files = [
            [*head(A), cell("0.9.0", observations=WORKS, resumed="r8")],
            [*head(A), cell("0.9.0", verdict="deviates", observations=FAILS, resumed="r9")],
        ]
        site = render(loaded(Path(folder), *files))
    text = Tags(site["clauses/errors.a.html"]).text
    assert "run r8" not in text
    assert "run r9" in text


def section_of(*records: Record) -> Section:
    found = [p.view for p in matrix_pages(Effects(results_of(*records)))]
    (section,) = (view.section for view in found if isinstance(view, PartView))
    assert isinstance(section, Section)
    return section


def test_the_columns_are_where_each_last_was() -> None:
    b, c = (clause(id, topologies=["1x8"]) for id in ("errors.b", "errors.c"))
    results = results_of(
        *head(A, b, c),
        *(cell("0.9.0", LEGACY, id=id) for id in ("errors.a", "errors.b", "errors.c")),
        # One program still asks for it where it is gone: that is not where it last was.
        cell("0.12.0.1", LEGACY),
        cell("0.10.0"),
        cell("0.12.0.1"),
    )
    assert [(one.side.implementation, one.version) for one in columns(results)] == [
        (LEGACY, "0.9.0"),
        (PMAP, "0.12.0.1"),
    ]


def test_a_row_knows_its_effect_its_mark_and_its_filters() -> None:
    section = section_of(
        *head(A),
        cell("0.9.0", LEGACY, observations=WORKS),
        cell("0.12.0.1", PMAP, "deviates", observations=FAILS),
    )
    (group,) = section.groups
    (row,) = group.rows
    legacy, new = row.lines[0].entries
    assert (legacy.words, legacy.effect, legacy.mark) == ("returns", None, Mark.RIGHT)
    assert (new.effect, new.mark) == (Effect.RAISES, Mark.WRONG)
    assert row.css.split() == ["changed", "untrue"]
    assert group.counted == ((Effect.RAISES, 1),)


def test_rows_are_grouped_by_the_first_two_parts_of_their_ids() -> None:
    ids = ["errors.b.two", "errors.a.one", "errors.a.two", "errors.c"]
    section = section_of(*head(*(clause(id) for id in ids)), cell("0.9.0", id="errors.c"))
    assert [(group.name, len(group.rows)) for group in section.groups] == [
        ("errors.a", 2),
        ("errors.b", 1),
        ("errors.c", 1),
    ]


def test_a_cell_without_a_record_is_not_run_not_right() -> None:
    section = section_of(*head(A), cell("0.9.0", LEGACY), cell("0.12.0.1", id="errors.a"))
    (group,) = section.groups
    strips = group.rows[0].lines[0].strips
    for one in strips:
        assert sum(n for mark, n in one.runs if mark is Mark.NOT_RUN) >= len(VERSIONS) - 1


def test_a_section_of_hundreds_stays_small() -> None:
    clauses = [
        clause(f"errors.group-{n // 9}.number-{n}", topologies=["1x8", "2x2"]) for n in range(400)
    ]
    cells = [
        cell(jax, implementation, verdict, id=one["clause"], observations=WORKS)
        for n, one in enumerate(clauses)
        for jax, implementation in (("0.9.0", LEGACY), ("0.12.0.1", PMAP))
        for verdict in [("conforms", "deviates")[n % 2]]
    ]
    results = results_of(*head(*clauses), *cells)
    pages = [p for p in matrix_pages(Effects(results)) if p.path.startswith("matrix/")]
    assert [p.path for p in pages] == [
        "matrix/errors.html",
        *(f"matrix/errors~{part}.html" for part in (1, 2, 3, 4, 5)),
    ]
    listed, *texts = map(shown, pages)
    assert max(len(text.encode()) for text in (listed, *texts)) < MOST_BYTES
    assert sum(len(classed(tree(text), "row")) for text in texts) == 400
    groups = {f"errors.group-{n // 9}" for n in range(400)}
    for page, text in zip(pages[1:], texts, strict=True):
        for anchor in re.findall(r'id="(g-[^"]+)"', text):
            href = f'href="../{page.path}#{anchor}"'
            assert href in listed
            groups.discard(anchor.removeprefix("g-"))
    assert not groups, "each group is on a page to which the list leads"


def test_a_group_larger_than_a_page_goes_on_on_the_next() -> None:
    ids = [f"errors.group.number-{n}" for n in range(450)]
    section = large(ids)
    assert [part.size for part in section.parts] == [180, 180, 90]
    rows = [row.clause.clause for part in section.parts for g in part.groups for row in g.rows]
    assert rows == sorted(ids)


def large(ids: list[str]) -> Section:
    clauses = [clause(id, topologies=["1x8"]) for id in ids]
    results = results_of(*head(*clauses), cell("0.9.0", id=ids[0]))
    views = [p.view for p in matrix_pages(Effects(results)) if p.template == "parts"]
    (section,) = views
    assert isinstance(section, Section)
    return section


def test_an_unknown_section_has_a_safe_page() -> None:
    site = render(results_of(*head(clause("errors.a", section=HOSTILE)), cell("0.9.0")))
    (name,) = (name for name in site if name.startswith("matrix/"))
    assert name.count("/") == 1
    assert MARKUP in Tags(site[name]).text


def shown(page: Page) -> str:
    """The text of one page, without the rest of its site."""
    template = environment().get_template(f"{page.template}.html.j2")
    frame = Frame(navigation=(), measured="")
    words = {"title": page.title, "description": page.description}
    return template.render(page=page.view, root=page.root, frame=frame, here="", **words)


def test_where_it_shows_comes_from_cells() -> None:
    entry = deviation(cause="dies")
    results = results_of(
        *head(A, clause("errors.fix", topologies=["1x8"], expected={PMAP: "returns"})),
        cause("dies"),
        cause("unseen"),
        cell("0.9.0", LEGACY, observations=WORKS),
        *(
            cell(jax, verdict="known deviation", deviation=entry, observations=FAILS)
            for jax in VERSIONS[1:]
        ),
        cell("0.12.0.1", id="errors.fix"),
    )
    seen, unseen = causes(Effects(results))
    assert (seen.cause.cause, unseen.cause.cause) == ("dies", "unseen")
    assert seen.effect is Effect.RAISES
    assert [(row.implementation, row.ranges) for row in seen.places] == [
        (PMAP, (("1x8", "0.9.0 to 0.12.0.1"),))
    ]
    [shown] = seen.clauses
    assert (shown.clause, shown.newest) == ("errors.a", Mark.WRONG)
    [(help, [one])] = seen.helps
    assert (help, one.clause, one.newest) == (Help.WORKS, "errors.fix", Mark.RIGHT)
    assert (unseen.helps[0][1][0].clause, unseen.absent) == ("errors.fix", ())
    assert (unseen.places, unseen.effect) == ((), None)


def test_a_list_says_in_which_versions_it_shows_on_any_topology() -> None:
    def seen(jax: str, topology: str) -> Record:
        entry = deviation(cause="dies")
        return cell(jax, verdict="known deviation", deviation=entry, topology=topology)

    both = clause("errors.a", topologies=["1x8", "4x2"])
    cells = [seen("0.8.0", "1x8"), seen("0.10.0", "4x2"), seen("0.12.0.1", "4x2")]
    (one,) = causes(Effects(results_of(*head(both), cause("dies"), *cells)))
    assert re.findall(r"\d[\d.]+|to", one.places_line) == ["0.8.0", "0.10.0", "to", "0.12.0.1"]


@pytest.mark.parametrize(
    ("name", "shown_of", "expected", "there"),
    [
        ("returns, shown of it", "shard_map", "returns all rows", True),
        ("returns, shown of another", PMAP, "returns all rows", False),
        ("raises, shown of another", PMAP, "raises ValueError", True),
    ],
)
def test_who_only_returns_otherwise_is_under_the_cause_where_it_is_shown_of_it(
    name: str, shown_of: str, expected: str, there: bool
) -> None:
    legacy, new = "legacy_pmap", "shard_map"
    results = results_of(
        *head(clause("errors.a", cause="dies", expected={legacy: "returns", new: expected})),
        cause("dies", shows=[shows(shown_of)]),
        cell("0.9.0", implementation=new),
    )
    (one,) = causes(Effects(results))
    assert bool(one.places) == there, name


def test_what_its_program_shows_stands_on_its_page() -> None:
    killed = shows(PMAP, "kept\nkept", jax="<0.10", ends="SIGSEGV")
    site = render(results_of(*sample(), cause("dies", shows=[killed])))
    text = Tags(site["causes/dies.html"]).text
    assert "new pmap on 1x8" in text
    assert "JAX <0.10" in text
    assert "kept\nkept\n(SIGSEGV)" in text


def test_a_few_cells_of_another_run_do_not_make_a_core_run_complete() -> None:
    core = {"runs": 3, "of": 12}
    full, some = clause("errors.a", topologies=["1x8", "2x2"]), clause("errors.b")
    other = {"target": "jax==0.8.0", "implementation": PMAP, "topology": "1x8"}
    records = [
        target("0.8.0", core=core),
        full,
        some,
        cell_of("errors.a", **other),
        target("0.8.0", run="another"),
        cell_of("errors.b", **other),
    ]
    found = results_of(*records)
    assert [one.core is not None for one in found.targets] == [True]
    larger = [cell_of("errors.b", **other | {"topology": f"1x{n}"}) for n in range(1, 4)]
    assert [one.core for one in results_of(*records, *larger).targets] == [None]


@pytest.mark.parametrize(("beyond", "complete"), [(4, False), (8, False), (9, True)])
def test_a_core_run_is_complete_once_as_many_cells_ran_as_it_leaves_out(
    beyond: int, complete: bool
) -> None:
    places = [f"1x{n}" for n in range(1, 13)]
    other = {"target": "jax==0.8.0", "implementation": PMAP}
    records = [
        target("0.8.0", core={"runs": 3, "of": 12}),
        clause("errors.a", topologies=places),
        *(cell_of("errors.a", **other, topology=one) for one in places[:3]),
        target("0.8.0", run="another"),
        *(cell_of("errors.a", **other, topology=one) for one in places[3 : 3 + beyond]),
    ]
    (found,) = results_of(*records).targets
    assert (found.core is None) == complete


def test_where_only_the_core_tests_ran_is_said_once() -> None:
    made = render(
        results_of(
            target("0.8.0", core={"runs": 3, "of": 12}),
            target("0.9.0"),
            claim("migrate-pmap.errors"),
            clause("errors.a", topologies=["1x8", "2x2"]),
            cell("0.8.0"),
            cell("0.9.0"),
            cell_of("errors.a", target="jax==0.9.0", implementation=PMAP, topology="2x2"),
        )
    )
    text = text_in(tree(made["clauses/errors.a.html"]))
    assert "Not run on JAX 0.8.0 with 2x2: core tests only." in text


def test_of_plain_jax_too_only_what_was_not_run_is_said_not_to_have_run() -> None:
    of_plain_jax = [cell("0.8.0", "jax"), cell("0.9.0", "jax")]
    others = {"implementation": PMAP, "topology": "1x8"}
    core = [
        target("0.8.0", core={"runs": 3, "of": 12}),
        target("0.9.0"),
        claim("migrate-pmap.errors"),
        clause("errors.a", expected={"jax": "returns"}),
        clause("errors.b"),
        *(cell_of("errors.b", target=f"jax=={one}", **others) for one in ("0.8.0", "0.9.0")),
    ]

    def said(*cells: Record) -> list[str]:
        text = text_in(tree(render(results_of(*core, *cells))["clauses/errors.a.html"]))
        return re.findall(r"Not run on JAX [^:]*", text)

    assert said(*of_plain_jax) == []
    assert said(*of_plain_jax[1:]) == ["Not run on JAX 0.8.0"]


def test_plain_jax_is_compared_with_plain_jax() -> None:
    results = results_of(
        *head(clause("errors.a", expected={"jax": "returns"}), clause("errors.b")),
        *(cell(jax, "jax") for jax in VERSIONS),
        *(
            cell_of("errors.b", target=f"jax=={VERSIONS[0]}", implementation=name, topology="1x8")
            for name in ("legacy_pmap", PMAP)
        ),
    )
    site = render(results)
    text = text_in(tree(site["clauses/errors.a.html"]))
    assert f"same as plain JAX in {VERSIONS[0]}" in text


def test_equal_arrays_of_several_calls_are_shown_once() -> None:
    calls = [
        returned([1.0, 2.0], name="first call"),
        returned([1.0, 2.0], name="second call"),
        returned([3.0, 4.0], name="third call"),
    ]
    [view] = observed([{"process": 0, "steps": calls}])
    lines = list(observed_lines(view))

    assert [line.strip() for line in lines if "the same as" in line] == ["the same as: first call"]
    assert [sum(value in line for line in lines) for value in ("1.0", "3.0")] == [1, 1]
