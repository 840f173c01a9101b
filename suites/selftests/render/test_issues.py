"""Known issues by version: what counts for whom, and which version is safest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from records import (
    Record,
    cause,
    cell,
    claim,
    deviation,
    fault,
    finding,
    raised,
    returned,
    shows,
    target,
)
from site_pages import text_in, tree
from two_sides import FAILS, FINE, FROM, HEAD, TO, known, program, ran, read

from reports.analysis.effects.digest import WHOLE_JOB
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects
from reports.analysis.issues.derive import issues
from reports.analysis.issues.places import Where
from reports.analysis.issues.risk import RiskKind, risk, safest
from reports.analysis.issues.states import State
from reports.render.site.build import render
from reports.render.site.causes import causes, pages
from reports.render.site.issues import grid, library_rows, place_rows
from reports.render.site.known import SafeTable, safe_table
from reports.render.site.marks import Mark
from reports.render.site.uses import Use
from reports.render.site.versions import VersionView
from reports.store.order import default_implementation

ORDINARY, PART, UNUSUAL = "results-stay-on-all-devices", "part-of-it", "axis-name-must-be-text"
NEW = Where("new_pmap", "0.9.0")
WRONG = finding("same shape, wrong values: [2.]", "value")


def shown(slug: str, clause: str, topology: str = "1x8", **of_cause: str) -> list[Record]:
    """A known issue by which a program fails under the new pmap in 0.9.0."""
    return [cause(slug, **of_cause), *known(clause, slug, FAILS, topology)]


def test_one_defect_counts_once_and_an_unusual_argument_not_at_all() -> None:
    effects = Effects(
        read(
            *HEAD,
            *shown(ORDINARY, "idioms.a"),
            *shown(PART, "idioms.b", part_of=ORDINARY),
            *shown(UNUSUAL, "errors.c"),
        )
    )

    assert len(issues(effects)) == 3
    found = risk(effects, NEW, "one")
    assert found is not None
    assert found.score == (0, 0, 0, 1, 0)
    assert [row.title for row in grid(effects, Use.PMAP).rows] == [
        f"Title of {ORDINARY}",
        f"Title of {UNUSUAL}",
    ]


def test_of_equal_issues_of_one_defect_the_whole_is_counted() -> None:
    parts = [*shown("a-part", "idioms.a", part_of=ORDINARY), *shown(ORDINARY, "idioms.b")]
    found = risk(Effects(read(*HEAD, *parts)), NEW, "one")
    assert found is not None
    (counted,) = dict(found.counted)[RiskKind.ERRORS]
    assert counted.cause.cause == ORDINARY


def test_of_two_versions_with_the_same_counts_the_one_with_fewer_crashes_is_safest() -> None:
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a")))
    found = risk(effects, NEW, "one")
    assert found is not None
    fatal = replace(found, fatal=issues(effects))
    assert safest([("0.9.0", found), ("0.9.1", fatal)]) == ("0.9.0",)
    assert fatal.words == "1 error, 1 crash or hang with rare arguments or after mistakes"


def test_a_rare_crash_counts_before_an_error_which_shows_at_once() -> None:
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a")))
    error = risk(effects, NEW, "one")
    assert error is not None
    counted = tuple((kind, ()) for kind in RiskKind)
    crash = replace(error, counted=counted, fatal=issues(effects))
    assert safest([("0.9.0", error), ("0.9.1", crash)]) == ("0.9.0",)


def test_an_issue_with_several_processes_is_no_risk_of_one() -> None:
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a", "2x2")))

    several = risk(effects, NEW, "several")
    assert several is not None
    assert several.count(RiskKind.ERRORS) == 1
    assert risk(effects, NEW, "one") is None  # no test of it was run with one process


@pytest.mark.parametrize(
    ("slug", "effect"),
    [("cpu-ids-by-2048", Effect.OTHER_OUTPUT), (ORDINARY, Effect.WRONG_NUMBERS)],
)
def test_device_numbers_are_no_wrong_values(slug: str, effect: Effect) -> None:
    records = [cause(slug), *known("idioms.a", slug, returned([2.0]))]
    records = [
        one | {"findings": [WRONG]} if one.get("verdict") == "known deviation" else one
        for one in records
    ]
    [issue] = issues(Effects(read(*HEAD, *records)))

    assert issue.at(NEW) is effect


def test_the_version_with_the_least_risk_is_marked() -> None:
    fine = ran("idioms.a", "new_pmap@0.8.0", returned([1.0]))
    table = safe_table(Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), fine)), Use.PMAP)

    assert marked(table) == [("0.9.0", 0, False), ("0.8.0", 0, True)]
    assert [row.implementation for row in table.rows] == ["new pmap", "new pmap"]
    assert table.advice == (
        "One process: the safest version of JAX 0.8 and later is 0.8.0. Known issues: none.",
    )


def test_a_safest_version_of_which_the_core_tests_alone_ran_says_so() -> None:
    fine = ran("idioms.a", "new_pmap@0.8.0", returned([1.0]))
    first, *others = HEAD
    records = [first | {"core": {"runs": 1, "of": 12}}, *others, *shown(ORDINARY, "idioms.a"), fine]
    (advice,) = safe_table(Effects(read(*records)), Use.PMAP).advice

    assert advice.endswith(" is 0.8.0 (core tests only). Known issues: none.")


def test_the_page_of_a_signal_names_the_safest_versions() -> None:
    crash = cell(
        "idioms.b", "crashed", target="jax==0.9.0", fault=fault("crashed"), observations=[]
    )
    fine = ran("idioms.a", "new_pmap@0.8.0", returned([1.0]))
    results = read(*HEAD, *shown(ORDINARY, "idioms.a"), fine, program("idioms.b"), crash)
    (advice,) = safe_table(Effects(results), Use.PMAP).advice
    site = render(results)

    assert advice in text_in(tree(site["errors/killed-by-sigsegv.html"]))
    others = [path for path in site if path.startswith("errors/") and "sigsegv" not in path]
    assert others
    assert not any("safest version" in site[path] for path in others)


def test_the_page_of_a_signal_names_the_others_and_the_list_counts_its_issues() -> None:
    aborted = fault("crashed")
    aborted["processes"][0]["signal"] = "SIGABRT"
    crashes = [
        cell(
            clause,
            "known deviation",
            target="jax==0.9.0",
            fault=signal,
            observations=[],
            deviation=deviation(cause=slug),
        )
        for clause, slug, signal in (
            ("idioms.a", ORDINARY, fault("crashed")),
            ("idioms.b", UNUSUAL, fault("crashed")),
            ("errors.c", PART, aborted),
        )
    ]
    programs = [program(one) for one in ("idioms.a", "idioms.b", "errors.c")]
    known_issues = [cause(slug) for slug in (ORDINARY, UNUSUAL, PART)]
    site = render(read(*HEAD, *known_issues, *programs, *crashes))

    links = re.compile(r"href=\.\./(errors/killed-by-\w+\.html)")
    for name, other in (("sigsegv", "sigabrt"), ("sigabrt", "sigsegv")):
        assert links.findall(site[f"errors/killed-by-{name}.html"])[:1] == [
            f"errors/killed-by-{other}.html"
        ]
    assert text_in(tree(site["errors.html"])).count("and 1 more") == 1


def test_the_mark_and_the_advice_are_about_the_versions_with_the_new_pmap() -> None:
    """A release before has no issue at all, and a reader of the advice would not find it marked."""
    old = ran("idioms.a", "legacy_pmap@0.7.2", returned([1.0]))
    records = [*HEAD, target("0.7.2"), *shown(ORDINARY, "idioms.a"), old]
    table = safe_table(Effects(read(*records)), Use.PMAP)

    assert marked(table) == [("0.9.0", 0, True), ("0.7.2", 0, False)]
    (advice,) = table.advice
    assert advice.endswith(" version of JAX 0.8 and later is 0.9.0. Known issues: 1 error.")


def test_a_version_in_which_a_rare_crash_was_not_tested_is_not_safest() -> None:
    died = ran(
        "idioms.b",
        "new_pmap@0.9.0",
        verdict="known deviation",
        observations=[],
        fault=fault("crashed"),
        deviation=deviation(cause=UNUSUAL),
    )
    records = [
        *shown(ORDINARY, "idioms.a"),
        ran("idioms.a", "new_pmap@0.8.0", returned([1.0])),
        cause(UNUSUAL),
        program("idioms.b"),
        died,
    ]
    table = safe_table(Effects(read(*HEAD, *records)), Use.PMAP)

    assert marked(table) == [("0.9.0", 0, True), ("0.8.0", 1, False)]


def test_the_advice_has_a_version_without_legacy_pmap_too() -> None:
    records = [*HEAD, target("0.10.0"), *shown(ORDINARY, "idioms.a")]
    fine = ran("idioms.a", "new_pmap@0.8.0", returned([1.0]))
    entry = {"verdict": "known deviation", "deviation": deviation(cause=ORDINARY)}
    last = ran("idioms.a", "new_pmap@0.10.0", FAILS, **entry)
    (advice,) = safe_table(Effects(read(*records, fine, last)), Use.PMAP).advice

    assert advice.startswith("One process: the safest version of JAX 0.8 and later is 0.8.0. ")
    assert advice.endswith(" Of JAX 0.10 and later, it is 0.10.0. Known issues: 1 error.")


def test_the_advice_about_the_switch_is_about_the_versions_that_have_it() -> None:
    records = [*HEAD, *shown(ORDINARY, "idioms.a")]
    (advice,) = safe_table(Effects(read(*records)), Use.LEGACY).advice

    assert advice.startswith("One process: the safest version of JAX 0.8 to 0.8.0 is ")


def test_a_test_of_an_issue_is_marked_by_the_implementations_that_show_it() -> None:
    fine = ran("idioms.a", "shard_map@0.9.0", returned([1.0]))
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), fine))
    (view,) = causes(effects)

    assert [one.newest for one in view.clauses] == [Mark.WRONG]


def test_an_issue_tells_the_effect_of_each_implementation_where_they_differ() -> None:
    wrong = ran(
        "idioms.a",
        "shard_map@0.9.0",
        returned([2.0]),
        verdict="known deviation",
        findings=[WRONG],
        deviation=deviation(cause=ORDINARY),
    )
    alone, both = (
        causes(Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), *more))) for more in ((), (wrong,))
    )

    assert alone[0].effects == (("raises", ""),)
    assert both[0].effects == (("wrong numbers", "shard_map"), ("raises", "new pmap"))


def marked(table: SafeTable) -> list[tuple[str, int, bool]]:
    return [(row.jax, row.one.untested, row.one.best) for row in table.rows if row.one is not None]


def test_a_count_leads_to_its_issues() -> None:
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a")))
    row = safe_table(effects, Use.PMAP).rows[0]

    assert row.one is not None
    assert [count for count, _ in row.one.counts] == [0, 0, 1, 0]
    href = row.one.counts[2][1]
    assert href == "versions/0.9.0.html#new_pmap-one-errors"
    view = VersionView(effects, "0.9.0", "0.8.0", ())
    named = {one.anchor: one.issues for _, lists in view.risks for one in lists}
    assert [link.text for _, link in named["new_pmap-one-errors"]] == [f"Title of {ORDINARY}"]


@pytest.mark.parametrize(
    ("jax", "implementation"),
    [("0.7.2", "legacy_pmap"), ("0.8.0", "new_pmap"), ("0.12.0.1", "new_pmap")],
)
def test_what_pmap_is_by_default(jax: str, implementation: str) -> None:
    assert default_implementation(jax) == implementation
    assert Use.PMAP.implementation(jax) == implementation
    assert Use.LEGACY.implementation(jax) == "legacy_pmap"


def test_a_version_in_which_an_issue_was_not_tested_is_not_the_safest() -> None:
    records = [*HEAD, *shown(ORDINARY, "idioms.a"), program("idioms.b")]
    other = ran("idioms.b", "new_pmap@0.8.0", returned([1.0]))
    fine = ran("idioms.b", "new_pmap@0.9.0", FAILS, verdict="known deviation")
    fine["deviation"] = deviation(cause=PART)
    table = safe_table(Effects(read(*records, cause(PART), other, fine)), Use.PMAP)

    assert marked(table) == [("0.9.0", 0, True), ("0.8.0", 1, False)]


def test_a_program_that_fails_by_another_issue_is_not_unaffected() -> None:
    entry = deviation(cause=PART)
    other = ran("idioms.a", "new_pmap@0.8.0", FAILS, verdict="known deviation", deviation=entry)
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), cause(PART), other))

    [row] = [one for one in grid(effects, Use.PMAP).rows if one.title == f"Title of {ORDINARY}"]
    said = ["another issue", "error (one process; several not tested)"]
    assert [cell.says for cell in row.cells] == said
    [issue] = [one for one in issues(effects) if one.cause.cause == ORDINARY]
    [row] = place_rows(effects.results, issue)
    assert [cell.says for cell in row.cells] == ["another issue (its tests raise)", "error"]


def test_a_part_of_a_defect_is_no_other_issue_of_the_whole() -> None:
    entry = deviation(cause=PART)
    other = ran("idioms.a", "new_pmap@0.8.0", FAILS, verdict="known deviation", deviation=entry)
    records = [*shown(ORDINARY, "idioms.a"), cause(PART, part_of=ORDINARY), other]
    found = issues(Effects(read(*HEAD, *records)))
    states = {
        one.cause.cause: [one.at(Where("new_pmap", jax)) for jax in ("0.8.0", "0.9.0")]
        for one in found
    }

    assert states[ORDINARY] == [Effect.RAISES, Effect.RAISES]
    assert states[PART] == [Effect.RAISES, None]


@pytest.mark.parametrize(("moved", "effect"), [(0, Effect.LIES_ELSEWHERE), (48, Effect.MOVES_MORE)])
def test_a_row_of_all_processes_that_communicates_is_extra_communication(
    moved: int, effect: Effect
) -> None:
    """That the values are those of all processes is documented; the cost is an effect."""
    some = {"all-reduce": 1} if moved else {}
    costs = [{"moved": {"bytes": n, "collectives": c}} for n, c in ((0, {}), (moved, some))]
    records = [
        cause(ORDINARY),
        program("idioms.a"),
        ran("idioms.a", "legacy_pmap@0.9.0", returned([1.0], extra=costs[0]), topology="2x2"),
        ran(
            "idioms.a",
            "shard_map@0.9.0",
            returned([2.0], extra=costs[1]),
            topology="2x2",
            verdict="known deviation",
            deviation=deviation(cause=ORDINARY),
        ),
    ]
    [issue] = issues(Effects(read(*HEAD, *records)))

    assert issue.at(Where("shard_map", "0.9.0")) is effect


def test_a_row_in_which_an_issue_never_shows_and_its_tests_fail_otherwise_is_left_out() -> None:
    by_other = deviation(cause=PART)
    others = [
        ran("idioms.a", side, FAILS, topology="2x2", verdict="known deviation", deviation=by_other)
        for side in ("new_pmap@0.8.0", "new_pmap@0.9.0")
    ]
    fine = ran("idioms.a", "new_pmap@0.8.0", returned([1.0]))
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), cause(PART), fine, *others))
    issue = next(one for one in issues(effects) if one.cause.cause == ORDINARY)

    assert [one.processes for one in place_rows(effects.results, issue)] == ["one process"]
    assert issue.found(Where("new_pmap", "0.8.0")).state is State.FREE


def test_where_other_programs_show_an_issue_one_that_does_not_says_nothing_of_it() -> None:
    entry = deviation(cause=ORDINARY)
    records = [cause(ORDINARY)]
    for id, jax in (("idioms.a", "0.9.0"), ("idioms.b", "0.8.0")):
        records += [
            program(id),
            ran(id, f"new_pmap@{jax}", FAILS, verdict="known deviation", deviation=entry),
        ]
    records.append(ran("idioms.b", "new_pmap@0.9.0", returned([1.0]), topology="2x2"))
    [issue] = issues(Effects(read(*HEAD, *records)))

    assert issue.others["new_pmap", "several"]["0.9.0"].state is State.NOT_TESTED


def test_an_implementation_that_is_removed_shows_only_what_asks_for_it() -> None:
    records = [*HEAD, cause(ORDINARY), program("idioms.a"), program("idioms.b")]
    entry = deviation(cause=ORDINARY)
    for side in ("legacy_pmap@0.8.0", "jax@0.8.0", "jax@0.9.0"):
        records.append(ran("idioms.a", side, FAILS, verdict="known deviation", deviation=entry))
    records.append(ran("idioms.b", "legacy_pmap@0.9.0", verdict="removed"))
    effects = Effects(read(*records))
    [issue] = issues(effects)

    said = {
        row.implementation: [one.says for one in row.cells]
        for row in place_rows(effects.results, issue)
    }
    assert said["legacy_pmap"] == ["error", "removed"]
    asks = ran("idioms.a", "legacy_pmap@0.9.0", FAILS, verdict="known deviation", deviation=entry)
    effects = Effects(read(*records, asks))
    [issue] = issues(effects)
    said = {
        row.implementation: [one.says for one in row.cells]
        for row in place_rows(effects.results, issue)
    }
    assert said["legacy_pmap"] == ["error", "error"]


@pytest.mark.parametrize(
    ("steps", "here"),
    [
        ([FAILS | {"name": "process 0"}, FAILS | {"name": "process 1"}], "several"),
        ([FAILS | {"name": "process 0"}], "one"),
        ([returned([1], [1], name=WHOLE_JOB)], "several"),
        ([returned([1], name=WHOLE_JOB)], "one"),
    ],
)
def test_a_plain_program_that_starts_several_processes_is_not_one(
    steps: list[Record], here: str
) -> None:
    entry = deviation(cause=ORDINARY)
    shows = ran("idioms.a", "jax@0.9.0", *steps, verdict="known deviation", deviation=entry)
    [issue] = issues(Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), shows)))

    assert list(issue.rows) == [("jax", here)]


@pytest.mark.parametrize(
    ("side", "effect"), [("new_pmap@0.9.0", Effect.MOVES_MORE), ("legacy_pmap@0.8.0", None)]
)
def test_communication_that_a_test_does_not_expect_is_an_effect_without_a_comparison(
    side: str, effect: Effect | None
) -> None:
    """Of legacy pmap it is nothing new."""
    wrong = {
        "findings": [finding("1 all-reduce", "collective")],
        "deviation": deviation(cause=ORDINARY),
    }
    some = [cause(ORDINARY), program("idioms.a"), program("idioms.b")]
    some += [ran("idioms.b", one, FINE) for one in ("legacy_pmap@0.8.0", "new_pmap@0.9.0")]
    some.append(ran("idioms.a", side, FINE, verdict="known deviation", **wrong))
    [issue] = issues(Effects(read(*HEAD, *some)))

    assert issue.at(Where(*side.split("@"))) is effect


def test_an_issue_that_legacy_pmap_shows_too_is_no_new_effect() -> None:
    entry = deviation(cause=ORDINARY)
    records = [
        ran("idioms.a", side, FAILS, verdict="known deviation", deviation=entry)
        for side in ("legacy_pmap@0.8.0", "new_pmap@0.8.0", "new_pmap@0.9.0")
    ]
    effects = Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), *records))
    [issue] = issues(effects)

    said = {
        row.implementation: [one.says for one in row.cells]
        for row in place_rows(effects.results, issue)
    }
    assert said["new_pmap"] == ["not new", "not new"]


@pytest.mark.parametrize(
    ("legacy", "new", "says"),
    [
        ("PmapSharding", "NamedSharding", "different output"),
        ("PmapSharding", "PmapSharding", "not new"),
        ("PmapSharding", "TypeError", "not new"),
        ("", "NamedSharding", "not new"),
    ],
)
def test_what_the_program_of_an_issue_prints_otherwise_than_under_legacy_pmap_is_new(
    legacy: str, new: str, says: str
) -> None:
    entry = deviation(cause=ORDINARY)
    records = [
        ran("idioms.a", side, FINE, verdict="known deviation", deviation=entry)
        for side in (FROM, TO)
    ]
    programs = [
        shows(name, prints)
        for name, prints in (("legacy_pmap", legacy), ("new_pmap", new))
        if prints
    ]
    issue_record = cause(ORDINARY, shows=programs)
    effects = Effects(read(*HEAD, issue_record, program("idioms.a"), *records))
    [issue] = issues(effects)

    rows = {row.implementation: row for row in place_rows(effects.results, issue)}
    assert rows["new_pmap"].cells[-1].says == says


ANOTHER = raised("ValueError", "another")
WARNED = FINE | {"warnings": [{"category": "UserWarning", "message": "not usable", "count": 1}]}


@pytest.mark.parametrize(
    ("old", "new", "code", "before", "says"),
    [
        (FAILS, ANOTHER, "", "conforms", "other error"),
        (FAILS, ANOTHER, "", "known deviation", "not new"),
        (WARNED, FINE, "warning", "conforms", "warning"),
        (WARNED, FINE, "warning", "known deviation", "not new"),
        (FINE, FINE, "warning", "conforms", "not new"),
    ],
)
def test_what_has_not_the_text_that_legacy_pmap_gives_is_new(
    old: Record, new: Record, code: str, before: str, says: str
) -> None:
    deviates = {
        "verdict": "known deviation",
        "deviation": deviation(cause=ORDINARY),
        "findings": [finding("raised ValueError, which does not name the body", code)],
    }
    records = [
        ran("idioms.a", FROM, old, **(deviates if before != "conforms" else {})),
        ran("idioms.a", TO, new, **deviates),
    ]
    effects = Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), *records))
    [issue] = issues(effects)

    rows = {row.implementation: row for row in place_rows(effects.results, issue)}
    assert rows["new_pmap"].cells[-1].says == says


def test_an_issue_of_a_library_is_shown_against_its_version() -> None:
    slug = "replicated-array-unreplicated-whole"
    had = {"0.8.0": "0.12.0", "0.9.0": "0.12.6"}
    heads = [target(jax, packages={"flax": flax}) for jax, flax in had.items()]
    records = [cause(slug), program("idioms.a"), ran("idioms.a", "new_pmap@0.8.0", returned([1.0]))]
    entry = deviation(cause=slug)
    wrong = ran("idioms.a", "new_pmap@0.9.0", returned([2.0]), verdict="known deviation")
    records.append(wrong | {"deviation": entry, "findings": [WRONG]})
    effects = Effects(read(*heads, *records))
    [issue] = issues(effects)
    versions, [row] = library_rows(effects.results, issue)
    assert issue.worst_under("new_pmap") is Effect.WRONG_NUMBERS
    assert issue.worst_under("shard_map") is None

    assert versions == ("0.12.0", "0.12.6")
    assert [one.says for one in row.cells] == ["not affected", "wrong values"]
    assert grid(effects, Use.PMAP).rows == ()
    found = risk(effects, NEW, "one")
    assert found is None or found.count(RiskKind.WRONG) == 0


def test_an_issue_is_absent_before_the_release_that_its_test_expects_to_bring_it() -> None:
    expected = {"jax": "before 0.9.0: returns one; since then: raises ValueError"}
    records = [
        program("idioms.a", expected=expected, cause=ORDINARY),
        ran("idioms.a", "jax@0.8.0", FINE),
        ran("idioms.a", "jax@0.9.0", FAILS),
    ]
    effects = Effects(read(*HEAD, cause(ORDINARY), *records))
    [issue] = issues(effects)

    [row] = place_rows(effects.results, issue)
    assert [one.says for one in row.cells] == ["not affected", "error"]


def test_an_issue_of_which_no_test_ran_in_a_version_is_not_tested_there() -> None:
    other = ran("idioms.b", "new_pmap@0.8.0", FAILS)
    effects = Effects(read(*HEAD, *shown(ORDINARY, "idioms.a"), program("idioms.b"), other))
    [issue] = issues(effects)

    [row] = place_rows(effects.results, issue)
    assert [one.says for one in row.cells] == ["not tested", "error"]


def test_threads_that_deadlock_hang() -> None:
    entry = deviation(cause=ORDINARY)
    stuck = raised("Deadlock", "64 of 64 threads sleep and use no CPU time")
    shows = ran("idioms.a", "new_pmap@0.9.0", stuck, verdict="known deviation", deviation=entry)
    [issue] = issues(Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), shows)))

    assert issue.at(NEW) is Effect.HANGS
    assert issue.worst is Effect.HANGS


@pytest.mark.parametrize(
    ("end", "effect"), [("exit 1", Effect.RAISES), ("SIGABRT", Effect.CRASHES), ("exit 0", None)]
)
def test_a_job_that_fails_in_every_version_has_the_effect_of_how_it_ends(
    end: str, effect: Effect | None
) -> None:
    step = returned([1.0], name="process 0", extra={"text": f"{end} | sum 3.0"})
    how = {
        "verdict": "known deviation",
        "deviation": deviation(cause=ORDINARY),
        "findings": [finding(end, "note", step="process 0")],
    }
    some = [ran("idioms.a", f"jax@{jax}", step, **how) for jax in ("0.8.0", "0.9.0")]
    records = [cause(ORDINARY), program("idioms.a", expected={"jax": "exits"}), *some]
    [issue] = issues(Effects(read(*HEAD, *records)))

    assert issue.worst is effect


def test_a_replacement_that_needs_more_than_the_original_is_extra_memory() -> None:
    peaks = {"known": 1.0, "replacement": 3.2, "original": 0.9}
    steps = [
        returned([1.0]) | {"name": name, "extra": {"peak in stacked arrays": peak}}
        for name, peak in peaks.items()
    ]
    entry = deviation(cause=ORDINARY)
    shows = ran("idioms.a", "jax@0.9.0", *steps, verdict="known deviation", deviation=entry)
    [issue] = issues(Effects(read(*HEAD, cause(ORDINARY), program("idioms.a"), shows)))

    assert issue.at(Where("jax", "0.9.0"), "one") is Effect.NEEDS_MORE_MEMORY


def test_of_one_defect_any_crash_counts_the_whole() -> None:
    entries = [(PART, "idioms.a", {"part_of": ORDINARY}), (ORDINARY, "idioms.b", {})]
    records = list(HEAD)
    for slug, clause, of_cause in entries:
        stuck = raised("Deadlock", "64 of 64 threads sleep and use no CPU time")
        entry = deviation(cause=slug)
        shows = ran(clause, "new_pmap@0.9.0", stuck, verdict="known deviation", deviation=entry)
        records += [cause(slug, **of_cause), program(clause), shows]
    found = risk(Effects(read(*records)), NEW, "one")

    assert found is not None
    assert [one.cause.cause for one in found.fatal] == [ORDINARY]


@pytest.mark.parametrize("tested", [False, True])
def test_a_crash_counts_with_several_processes_unless_a_test_has_several(tested: bool) -> None:
    stuck = raised("Deadlock", "64 of 64 threads sleep and use no CPU time")
    entry = deviation(cause=UNUSUAL)
    records = [
        *HEAD,
        *shown(ORDINARY, "idioms.b", "2x2"),
        cause(UNUSUAL),
        program("errors.c"),
        ran("errors.c", "new_pmap@0.9.0", stuck, verdict="known deviation", deviation=entry),
        *([ran("errors.c", "new_pmap@0.9.0", FINE, topology="2x2")] if tested else []),
    ]
    found = risk(Effects(read(*records)), NEW, "several")

    assert found is not None
    assert [one.cause.cause for one in found.fatal] == ([] if tested else [UNUSUAL])


@pytest.mark.parametrize(
    ("of_cause", "verdict", "of_claim", "said"),
    [
        ("implementation", "known deviation", "error", "JAX"),
        ("platform", "known deviation", "error", "the platform"),
        ("documentation", "known deviation", "error", "the documentation, which differs"),
        ("documentation", "known deviation", "silence", "JAX; the tested documents do not"),
        ("documentation", "conforms", "error", "JAX, as documented"),
    ],
)
def test_a_document_is_blamed_only_for_what_it_says(
    of_cause: str, verdict: str, of_claim: str, said: str
) -> None:
    documented = {"legacy_pmap": "returns it", "new_pmap": "raises ValueError"}
    entry = deviation(cause=ORDINARY) if verdict == "known deviation" else None
    records = [
        claim("migrate-pmap.b", claim_kind=of_claim),
        cause(ORDINARY, cause_kind=of_cause),
        program("idioms.a", claim="migrate-pmap.b", cause=ORDINARY, expected=documented),
        ran("idioms.a", "new_pmap@0.9.0", FAILS, verdict=verdict, deviation=entry),
    ]
    (view,) = causes(Effects(read(*records)))

    assert view.origin.startswith(said)


def test_what_costs_more_is_due_to_jax_whatever_a_document_says() -> None:
    moved = [{"moved": {"bytes": n, "collectives": {}}} for n in (0, 48)]
    records = [
        cause(ORDINARY, cause_kind="documentation"),
        program("idioms.a"),
        ran("idioms.a", "legacy_pmap@0.9.0", returned([1.0], extra=moved[0])),
        ran(
            "idioms.a",
            "new_pmap@0.9.0",
            returned([1.0], extra=moved[1]),
            verdict="known deviation",
            deviation=deviation(cause=ORDINARY),
        ),
    ]
    (view,) = causes(Effects(read(*records)))

    assert view.effect is Effect.MOVES_MORE
    assert view.origin == "JAX, whose documentation says something else"


def test_what_follows_a_library_is_due_to_its_version() -> None:
    slug = "replicated-array-unreplicated-whole"
    (view,) = causes(Effects(read(*shown(slug, "idioms.a", cause_kind="documentation"))))

    assert view.origin == "flax, from 0.12.5 on"


def test_the_page_of_an_issue_says_since_when_pmap_is_the_new_one() -> None:
    old = [
        ran("idioms.a", f"{side}@0.8.0", returned([1.0])) for side in ("legacy_pmap", "new_pmap")
    ]
    (page,) = pages(Effects(read(*shown(ORDINARY, "idioms.a"), *old)))

    assert page.view.defaults == (
        "`jax.pmap` is new pmap by default from JAX 0.8.0 on; legacy pmap runs up to JAX 0.8.0 if "
        "the option `jax_pmap_shmap_merge` selects it."
    )


@pytest.mark.parametrize(
    ("slug", "effect"), [(ORDINARY, None), ("donated-copy-original-deleted", Effect.WARNS)]
)
def test_a_warning_counts_for_the_issue_that_explains_it(slug: str, effect: Effect | None) -> None:
    """`known.toml` names the issue whose warning it is, in these clauses."""
    text = "Donated pmap argument required resharding."
    said = [{"category": "UserWarning", "message": text, "count": 1}]
    records = [
        *map(cause, {ORDINARY, "donated-copy-original-deleted"}),
        program("donation.a"),
        ran("donation.a", "legacy_pmap@0.9.0", returned([1.0])),
        ran(
            "donation.a",
            "new_pmap@0.9.0",
            returned([1.0], warnings=said),
            verdict="known deviation",
            deviation=deviation(cause=slug),
        ),
    ]
    [issue] = issues(Effects(read(*records)))

    assert issue.cause.cause == slug
    assert issue.at(NEW) is effect


def test_beside_the_warning_of_another_issue_its_own_effect_counts() -> None:
    text = "Donated pmap argument required resharding."
    said = [{"category": "UserWarning", "message": text, "count": 1}]
    now = finding("no error", "error", step="refused", error_expected=True)
    records = [
        *map(cause, {ORDINARY, "donated-copy-original-deleted"}),
        program("donation.a"),
        ran("donation.a", "legacy_pmap@0.9.0", returned([1.0]), raised(name="refused")),
        ran(
            "donation.a",
            "new_pmap@0.9.0",
            returned([1.0], warnings=said),
            returned([1.0], name="refused"),
            verdict="known deviation",
            findings=[now],
            deviation=deviation(cause=ORDINARY),
        ),
    ]
    [issue] = issues(Effects(read(*records)))

    assert issue.at(NEW) is Effect.TAKEN
