"""An upgrade between two sides: what is one entry, in which order, what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from records import Record, cause, deviation, finding, leaf, raised, returned, shows, step, write
from two_sides import (
    FAILS,
    FINE,
    FROM,
    HEAD,
    TO,
    changed,
    known,
    made,
    program,
    ran,
    read,
)

from harness.commandline.main import main
from reports.analysis.comparing.changes import CompareError
from reports.analysis.effects.changed import Group, in_processes
from reports.analysis.effects.effect import Effect
from reports.analysis.effects.pairs import Effects, side, sides
from reports.analysis.effects.upgrade import upgrade
from reports.render.text import upgrade as upgrade_text
from reports.store.shown import ONE, SEVERAL

WRONG = returned([2.0])
SAW = finding("same shape, wrong values: [2.]", "value")


def made_wrong(id: str, slug: str, before: Record) -> list[Record]:
    """A program that gives wrong numbers by a cause, and did something else before."""
    how = {"verdict": "known deviation", "deviation": deviation(cause=slug)}
    return [
        program(id),
        ran(id, FROM, before),
        ran(id, TO, WRONG, findings=[SAW], **how),
    ]


def test_what_ran_comes_first_and_what_raised_is_told_so() -> None:
    records = [
        cause("many"),
        *made_wrong("errors.a", "many", FAILS),
        *made_wrong("errors.b", "many", FAILS),
        cause("one"),
        *made_wrong("errors.c", "one", FINE),
    ]
    found = made(*records)
    assert [(e.title, e.ran_before, e.effect) for e in found.entries] == [
        ("Title of one", True, Effect.WRONG_NUMBERS),
        ("Title of many", False, Effect.WRONG_NUMBERS),
    ]
    # What raised before and is silently wrong now is a wrong value.
    assert {e.group for e in found.entries} == {Group.WRONG_NUMBERS}
    text = upgrade_text.as_text(read(*records), found)
    assert "Title of many (wrong values; an error before)" in text
    assert [upgrade_text.REFUSED in upgrade_text.notes(e) for e in found.entries] == [
        False,
        True,
    ]


def test_the_example_is_of_what_ran() -> None:
    [entry] = made(
        cause("one"),
        *made_wrong("errors.a", "one", FAILS),
        *made_wrong("errors.b", "one", FINE),
    ).entries
    assert (entry.group, entry.smallest) == (Group.WRONG_NUMBERS, "errors.b")
    assert entry.ran_before


def test_a_part_of_what_raised_that_ran_is_by_itself() -> None:
    whole = made_wrong("errors.a", "whole", FAILS)
    part = cause("part", part_of="whole")
    apart = made(cause("whole"), *whole, part, *made_wrong("errors.b", "part", FINE))
    folded = made(cause("whole"), *whole, part, *made_wrong("errors.b", "part", FAILS))
    assert apart.counted(Group.WRONG_NUMBERS) == 2
    assert folded.counted(Group.WRONG_NUMBERS) == 1


def test_what_was_looked_at_with_several_processes_matters_to_one_alone() -> None:
    alone, both = {"topologies": ["1x8"]}, {"topologies": ["1x8", "2x2"]}
    cells = [
        [program(id, **where), *known(id, "one", FAILS)[1:]]
        for id, where in (("errors.a", alone), ("errors.b", both))
    ]
    [entry] = made(cause("one"), *cells[0]).entries
    assert entry.matters == {ONE, SEVERAL}
    [entry] = made(cause("one"), *cells[0], *cells[1]).entries
    assert entry.matters == {ONE}


@pytest.mark.parametrize(("code", "slug"), [("note", None), ("sharding", "one")])
def test_a_note_explains_no_place(code: str, slug: str | None) -> None:
    moved = returned(leaf([1.0], sharding={"devices": [2, 3], "memory_kind": "device"}))
    found = made(
        cause("one"),
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        ran(
            "errors.a",
            TO,
            moved,
            verdict="known deviation",
            findings=[finding("something else", code)],
            deviation=deviation(cause="one"),
        ),
    )
    [entry] = found.entries_in(Group.LIES)
    assert (entry.cause.cause if entry.cause else None) == slug


def test_programs_of_one_cause_are_one_entry() -> None:
    found = made(
        cause("one-cause"),
        *known("errors.a", "one-cause", FAILS),
        *known("errors.b", "one-cause", raised("KeyError", "other"), "2x2"),
    )

    [entry] = found.entries
    assert entry.group is Group.RAISES
    assert (entry.title, entry.programs) == ("Title of one-cause", 2)
    assert entry.topologies == ("1x8", "2x2")
    assert entry.clauses == ("errors.a", "errors.b")


def test_without_a_cause_a_claim_and_the_kind_of_difference_are_one() -> None:
    found = made(
        *changed("errors.a", raised("ValueError", "no devices 1, 2")),
        *changed("errors.b", raised("ValueError", "no devices 3, 4")),
        *changed("errors.c", raised("KeyError", "i")),
    )

    assert sorted(entry.clauses for entry in found.entries) == [
        ("errors.a", "errors.b"),
        ("errors.c",),
    ]


def test_a_clause_of_several_rows_is_one_program() -> None:
    found = made(
        *changed("errors.a", FAILS, fact="errors.one"),
        *changed("errors.b", FAILS, fact="errors.one"),
    )

    assert [entry.programs for entry in found.entries] == [1]


def test_groups_come_in_the_order_of_asking() -> None:
    warns = step(
        value=FINE["value"],
        warnings=[{"category": "UserWarning", "message": "slow", "count": 1}],
    )
    found = made(
        *changed("a.warns", warns),
        *changed("b.raises", FAILS),
        *changed("c.wrong", returned([2.0])),
        *changed("d.same", FINE),
        program("e.fine"),
        ran("e.fine", FROM, FAILS),
        ran("e.fine", TO, FINE),
    )

    groups = [group for group, _ in found.groups]
    assert groups == [Group.WRONG_NUMBERS, Group.RAISES, Group.WARNS, Group.REPAIRED]
    assert (found.same, found.compared) == (1, 5)


def test_what_a_page_leaves_out_does_not_count_as_different() -> None:
    found = made(
        cause("one"),
        *known("errors.a", "one", FAILS),
        *changed("errors.b", returned([2.0])),
        *changed("errors.c", FINE),
    )
    assert (found.same, found.compared) == (1, 3)

    without = found.only(lambda entry: entry.cause is None)
    assert (without.same, without.compared) == (2, 3)
    uncounted = found.only(lambda entry: entry.cause is None, count_others=False)
    assert (uncounted.same, uncounted.compared) == (1, 2)
    assert (uncounted.same_of(ONE), uncounted.compared_of[ONE]) == (1, 2)


def test_what_has_no_result_before_does_not_count_as_different() -> None:
    """It is compared with one process only, and wrong with several, where nothing ran before."""
    found = made(
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        ran("errors.a", TO, FINE),
        ran("errors.a", TO, WRONG, topology="2x2", verdict="deviates", findings=[SAW]),
    )

    assert [entry.compared for entry in found.entries] == [False]
    assert (found.same, found.compared) == (1, 1)


def test_the_smallest_program_is_the_example() -> None:
    found = made(
        *changed("errors.a", FAILS, source="x = 1\n" * 9),
        *changed("errors.b", FAILS, source="x = 1\n"),
    )

    assert found.entries[0].smallest == "errors.b"


def test_a_fix_that_fails_there_is_told_as_such() -> None:
    fails = ran(
        "errors.fix",
        TO,
        FAILS,
        verdict="known deviation",
        findings=[finding("raised ValueError: no")],
    )
    found = made(
        program("errors.a"),
        program("errors.fix", fixes="errors.a"),
        ran("errors.fix", FROM, FINE),
        fails,
    )

    [entry] = found.entries
    assert (entry.group, entry.effect) == (Group.FIX_FAILS, Effect.RAISES)


def test_a_fix_that_gives_wrong_numbers_is_more_severe_than_that() -> None:
    wrong = finding("same shape, wrong values", "value")
    found = made(
        program("errors.a"),
        program("errors.fix", fixes="errors.a"),
        ran("errors.fix", FROM, FINE),
        ran("errors.fix", TO, returned([2.0]), verdict="known deviation", findings=[wrong]),
    )

    assert [entry.group for entry in found.entries] == [Group.WRONG_NUMBERS]


def test_what_works_where_it_was_seen_comes_first_among_the_remedies() -> None:
    found = made(
        cause("one-cause", remedies=["fix.elsewhere", "fix.there", "fix.gone"]),
        *known("errors.a", "one-cause", FAILS, "2x2"),
        program("fix.elsewhere"),
        ran("fix.elsewhere", TO, FINE, topology="1x8"),
        program("fix.there"),
        ran("fix.there", TO, FINE, topology="2x2"),
        ran("fix.there", TO, FAILS, topology="4x2", verdict="known deviation"),
    )

    [entry] = found.entries
    assert [(one.clause, one.result) for one in entry.remedies] == [
        ("fix.there", "works on 2x2; does not work on 4x2"),
        ("fix.elsewhere", "works on 1x8"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        ("conforms", "deviates", "No longer holds: It adds up"),
        ("deviates", "deviates", "Expected: It adds up"),
        ("not applicable", "deviates", "Expected: It adds up"),
    ],
)
def test_what_is_expected_is_no_title_for_what_is_not_so(
    before: str, after: str, title: str
) -> None:
    wrong = finding("same shape, wrong values", "value")
    old = {"observations": []} if before == "not applicable" else {}
    found = made(
        program("errors.a", title="It adds up."),
        ran("errors.a", FROM, FINE, verdict=before, **old),
        ran("errors.a", TO, returned([2.0]), verdict=after, findings=[wrong]),
        *changed("errors.same", FINE),
    )

    assert [entry.title for entry in found.entries] == [title]


def test_a_title_is_not_what_an_earlier_step_of_the_test_does() -> None:
    """The test ends as the claim says, and the call before raises another error."""
    found = made(
        program("errors.a"),
        ran("errors.a", FROM, raised("TypeError", "no"), returned([1.0], name="new map")),
        ran("errors.a", TO, raised("ValueError", "no"), returned([1.0], name="new map")),
        *changed("errors.same", FINE),
    )

    assert [entry.title for entry in found.entries] == [
        "Another error than before, within the test “What migrate-pmap.errors says”"
    ]


def test_a_hazard_without_a_baseline_is_told_and_said_to_be_uncompared() -> None:
    wrong = finding("same shape, wrong values", "value")
    found = made(
        program("errors.a"),
        ran("errors.a", FROM, verdict="not applicable", observations=[]),
        ran("errors.a", TO, returned([2.0]), verdict="deviates", findings=[wrong]),
        *changed("errors.b", FINE),
    )

    [entry] = found.entries
    assert entry.group is Group.WRONG_NUMBERS
    assert list(upgrade_text.notes(entry)) == [upgrade_text.UNCOMPARED]


def test_what_was_not_run_is_counted_and_why() -> None:
    found = made(
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        program("errors.b"),
        ran("errors.b", TO, FINE),
        program("errors.c"),
        ran("errors.c", FROM, FINE),
        ran("errors.c", TO, verdict="not applicable", observations=[]),
        *changed("errors.d", FINE),
    )

    assert dict(found.missing) == {
        f"not run under {TO}": 1,
        f"not run under {FROM}": 1,
        f"not applicable under {TO}": 1,
    }
    assert found.entries == ()
    assert found.compared == 1


def test_an_old_entry_without_a_cause_takes_the_only_one_that_the_clause_has() -> None:
    found = made(
        cause("one-cause"),
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        ran("errors.a", TO, FAILS, verdict="known deviation", deviation=deviation()),
        ran(
            "errors.a",
            "shard_map@0.9.0",
            FAILS,
            verdict="known deviation",
            deviation=deviation(cause="one-cause"),
        ),
    )

    assert [entry.title for entry in found.entries] == ["Title of one-cause"]


@pytest.mark.parametrize(
    ("name", "shown_of", "new", "told_by_it"),
    [
        ("shown of it", "new_pmap", returned([2.0]), True),
        ("shown of any", "jax", returned([2.0]), True),
        ("shown of another", "legacy_pmap", returned([2.0]), False),
        ("shown of another, but it raises", "legacy_pmap", FAILS, True),
    ],
)
def test_what_returns_otherwise_has_its_clauses_cause_where_that_is_shown_of_it(
    name: str, shown_of: str, new: Record, told_by_it: bool
) -> None:
    found = made(
        cause("one-cause", shows=[shows(shown_of, "2")]),
        *changed("errors.a", new, cause="one-cause"),
    )

    assert [entry.cause is not None for entry in found.entries] == [told_by_it], name


@pytest.mark.parametrize(
    ("name", "topologies", "said"),
    [
        (
            "asked of one process",
            ["1x8"],
            "one process; not tested with several",
        ),
        ("asked of both", ["1x8", "2x2"], "one process"),
    ],
)
def test_what_nobody_ran_with_several_processes_matters_there(
    name: str, topologies: list[str], said: str
) -> None:
    [entry] = made(*changed("errors.a", FAILS, topologies=topologies)).entries

    assert in_processes([entry]) == said, name
    assert (SEVERAL in entry.matters) == (name == "asked of one process")


def test_a_plain_program_that_starts_several_processes_matters_to_them() -> None:
    def ends(*how: str) -> list[Record]:
        return [
            returned(name=f"process {n}") | {"extra": {"text": end}} for n, end in enumerate(how)
        ]

    killed = finding("SIGABRT", "note", step="process 0")
    found = made(
        program("jobs.a", expected={"jax": "ends"}),
        ran("jobs.a", "jax@0.8.0", *ends("exit 0", "exit 0")),
        ran("jobs.a", "jax@0.9.0", *ends("SIGABRT", "exit 0"), findings=[killed]),
        *changed("errors.same", FINE),
    )

    [entry] = found.entries
    assert (entry.group, entry.topologies) == (Group.DIES, ("standalone job",))
    assert entry.matters == {SEVERAL}
    assert found.compared_of == {"": 2, ONE: 1, SEVERAL: 1}


def test_what_maps_nothing_counts_once_and_not_within_one_jax() -> None:
    of_jax = program("names.a", expected={"jax": "returns it"})
    results = read(
        of_jax, ran("names.a", "jax@0.8.0", FINE), ran("names.a", "jax@0.9.0", FAILS),
        *changed("errors.a", FINE), ran("errors.a", "new_pmap@0.8.0", FINE),
    )  # fmt: skip
    effects = Effects(results)
    here, there, same_jax = (side(results, one, "") for one in (FROM, TO, "new_pmap@0.8.0"))

    assert [e.smallest for e in upgrade(effects, here, there).entries] == ["names.a"]
    assert upgrade(effects, here, same_jax).entries == ()


def test_legacy_is_no_side_where_it_is_gone() -> None:
    results = read(
        program("errors.a"),
        ran("errors.a", FROM, FINE),
        ran("errors.a", TO, FINE),
        ran("errors.a", "legacy_pmap@0.9.0", verdict="removed", observations=[]),
        program("switches.a"),
        ran("switches.a", "legacy_pmap@0.9.0", FINE),
    )

    assert [str(one) for one in sides(results)] == [FROM, TO]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("no version", "legacy_pmap", "write it IMPLEMENTATION@VERSION"),
        ("unknown version", "legacy_pmap@0.1", "it was in jax 0.8.0"),
        ("unknown implementation", "old_pmap@0.8.0", "the files have legacy_pmap, new_pmap"),
    ],
)
def test_an_unknown_side_says_which_there_are(name: str, text: str, said: str) -> None:
    with pytest.raises(CompareError, match=said) as error:
        side(read(*changed("errors.a", FINE)), text, "--from")
    assert text in str(error.value), name


RECORDS = [
    *HEAD,
    cause("one-cause"),
    *known("errors.a", "one-cause", FAILS),
    *changed("errors.b", returned([2.0]), title="With `code` and <b>markup</b>"),
    *changed("errors.c", FINE),
]


def test_the_command_tells_the_same_in_three_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write(tmp_path / "x.jsonl", RECORDS))
    asked = ["report", "upgrade", file, "--from", FROM, "--to", TO]

    assert main(asked) == 0
    text = capsys.readouterr().out
    assert main([*asked, "--format", "markdown"]) == 0
    markdown = capsys.readouterr().out
    assert main([*asked, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)

    wrong, raises = (f"{group.heading}: 1" for group in (Group.WRONG_NUMBERS, Group.RAISES))
    assert text.index(wrong) < text.index(raises)
    assert "Title of one-cause" in text
    assert "1 of 3 tests" in text
    assert f"## {raises}" in markdown
    assert [one["group"] for one in made["groups"]] == [
        Group.WRONG_NUMBERS,
        Group.RAISES,
    ]
    assert made["groups"][1]["entries"][0]["cells"][0]["clause"] == "errors.a"


def test_the_command_says_in_one_line_that_a_side_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write(tmp_path / "x.jsonl", RECORDS))

    assert main(["report", "upgrade", file, "--from", FROM, "--to", "new_pmap@7"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pmap-conformance: --to new_pmap@7: ")
    assert "0.9.0" in error
    assert len(error.splitlines()) == 1


def test_markdown_stays_below_its_limit_and_says_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = read(*RECORDS[len(HEAD) :])
    found = upgrade(Effects(results), side(results, FROM, ""), side(results, TO, ""))
    whole = upgrade_text.as_markdown(results, found)
    monkeypatch.setattr(upgrade_text, "MOST_BYTES", 600)

    short = upgrade_text.as_markdown(results, found)

    assert "left out" not in whole
    assert len(short.encode()) <= 600
    assert "left out" in short


def test_markup_of_a_file_is_no_markup_of_the_page() -> None:
    hostile = changed("errors.h", raised("ValueError", "<script>alert(1)</script> `x` **y**"))
    results = read(*hostile)
    found = upgrade(Effects(results), side(results, FROM, ""), side(results, TO, ""))

    text = upgrade_text.as_markdown(results, found)

    inline = [part for one in MarkdownIt().parse(text) for part in one.children or ()]
    assert "html_inline" not in {part.type for part in inline}
    assert "<script>" in "".join(part.content for part in inline)


def test_an_error_that_is_now_the_expected_one_is_named_by_what_was_wrong() -> None:
    """Not by what its document announces, which is not fixed."""
    broken = {"verdict": "known deviation", "deviation": deviation(cause="broken")}
    refused = dict.fromkeys(("legacy_pmap", "new_pmap", "shard_map"), "raises ValueError")
    found = made(
        cause("broken"),
        cause("refused"),
        program("errors.a", cause="refused", expected=refused),
        ran("errors.a", FROM, raised("StoreException"), **broken),
        ran("errors.a", TO, FAILS),
    )

    assert [(e.group, e.title) for e in found.entries] == [(Group.REPAIRED, "Title of broken")]


@pytest.mark.parametrize(
    ("first_calls", "said"),
    [
        ([FINE, FINE], upgrade_text.SECOND_CALL),
        ([FINE, FAILS], upgrade_text.SECOND_CALL_OF_SOME),
        ([FAILS, FAILS], None),
    ],
)
def test_whether_the_second_call_fails_is_said_of_all_tests_or_of_some(
    first_calls: list[Record], said: str | None
) -> None:
    second = returned([1.0], name="second call")
    fails = raised("ValueError", "no", name="second call")
    how = {"verdict": "known deviation", "deviation": deviation(cause="one")}
    records = [cause("one")]
    for number, first in enumerate(first_calls):
        id = f"errors.{number}"
        records += [program(id), ran(id, FROM, FINE, second), ran(id, TO, first, fails, **how)]
    [entry] = made(*records).entries
    assert list(upgrade_text.notes(entry)) == ([said] if said else [])
