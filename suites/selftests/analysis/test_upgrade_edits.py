"""The edits for an upgrade: their words and order, what they avert, and what is not known."""

from __future__ import annotations

import re

from records import Record, cause, claim, deviation, finding, raised, returned, target
from two_sides import FAILS, FINE, FROM, TO, changed, known, made, program, ran, read

from reports.analysis.effects.changed import Group
from reports.analysis.effects.edits import AS_IN, AS_SHARD_MAP, edits
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.plan import Plan, plan
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.effects.upgrade import upgrade
from reports.render.text import upgrade as upgrade_text

SHARDED = "shard_map@0.9.0"
PUT = "Put it there."


def fix(id: str = "errors.fix", topology: str = "1x8", **other: object) -> list[Record]:
    """A remedy that works on the new side, or of which it is told otherwise."""
    return [
        program(id, title=f"Title of {id}."),
        ran(id, TO, FINE, topology=topology, **other),
    ]


def by(slug: str, clause: str, topology: str = "1x8", **other: object) -> list[Record]:
    """A program that fails by a cause."""
    return [cause(slug, **other), *known(clause, slug, FAILS, topology)]


def test_causes_of_one_edit_are_one_line_with_all_that_it_averts() -> None:
    found = edits(
        made(
            *by("one", "errors.a", edit=PUT),
            *by("other", "errors.b", "2x2", edit=PUT),
            *fix(topology="2x2"),
        )
    )

    [edit] = found.some
    assert edit.text == PUT
    assert sorted(entry.title for entry in edit.averts) == ["Title of one", "Title of other"]
    assert edit.topologies == ("1x8", "2x2")
    assert [one.clause for one in edit.remedies] == ["errors.fix"]
    assert edit.tried == "several processes"
    assert found.unknown == ()


def test_an_edit_is_told_only_where_what_shows_it_works() -> None:
    works, fails = (
        fix("fix.second"),
        fix(verdict="known deviation", findings=[finding("y", step="x")]),
    )
    remedies = ["errors.fix", "fix.second"]

    found = edits(made(*by("one", "errors.a", edit=PUT, remedies=remedies), *fails, *works))
    assert [one.text for one in found.some] == [AS_IN.format("Title of fix.second")]

    found = edits(made(*by("one", "errors.a", edit=PUT), *fails))
    assert found.some == ()
    assert [entry.title for entry in found.unknown] == ["Title of one"]


def test_what_averts_the_most_severe_comes_first_then_what_averts_most() -> None:
    found = edits(
        made(
            *by("few", "errors.a", edit="Few."),
            *by("many", "errors.b", edit="Many."),
            *known("errors.c", "many", FAILS),
            cause("grave", edit="Grave."),
            *known("errors.n", "grave", returned([2.0])),
            *fix(),
        )
    )

    assert [one.text for one in found.some] == ["Grave.", "Many.", "Few."]


def test_edits_of_what_ordinary_programs_do_are_shown_at_once() -> None:
    silent = claim("pmap-silence.odd", claim_kind="silence")
    records = [
        silent,
        *by("documented", "errors.a", edit="Documented."),
        *by("real", "idioms.a", edit="Real."),
        *by("odd", "silences.a", edit="Odd."),
        cause("grave", edit="Grave."),
        *known("silences.b", "grave", returned([2.0])),
        *fix(),
    ]
    odd = {"idioms.a", "silences.a", "silences.b"}
    told_so = [
        one | {"claim": "pmap-silence.odd"} if one.get("clause") in odd and "title" in one else one
        for one in records
    ]
    results = read(*told_so)
    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, TO, "--to"))
    known_ = plan(results, found)

    assert [one.title for one in known_.likely] == ["Documented.", "Real."]
    assert [one.title for one in known_.rare] == ["Grave.", "Odd."]
    assert [one.severe for one in known_.rare] == [True, False]

    short = plan(results, found, most_words=0)  # one is shown however long it is
    assert [one.title for one in short.likely] == ["Documented."]
    assert [one.title for one in short.rare] == ["Real.", "Grave.", "Odd."]
    assert [one.title for one in short.named(100)] == ["Real."]
    assert [one.title for one in short.severe] == ["Grave."]


def test_the_next_likely_edits_are_named_as_far_as_there_is_room() -> None:
    long = "Long" + " word" * 9 + "."
    records = [
        *by("first", "idioms.a", edit="First."),
        *by("long", "idioms.b", edit=long),
        *by("short", "idioms.c", edit="Short."),
        *fix(),
    ]
    results = read(*records)
    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, TO, "--to"))

    made = plan(results, found, most_words=0)
    assert [one.title for one in made.likely] == ["First."]
    assert [one.title for one in made.named(10)] == ["Short."]
    assert [one.title for one in made.named(20)] == [long, "Short."]


def test_of_equals_the_edit_that_more_tests_need_comes_first() -> None:
    records = [
        *by("one", "idioms.a", edit="A."),
        *by("two", "idioms.b", edit="B."),
        *known("idioms.c", "two", FAILS),
        *fix(),
    ]
    results = read(*records)
    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, TO, "--to"))
    assert [one.title for one in plan(results, found).likely] == ["B.", "A."]


def test_edits_of_one_rewrite_are_one_change_with_its_lines() -> None:
    results = read(
        *by("index-replicates-the-row", "errors.a", edit="One."),
        *by("unstack-moves-rows-twice", "errors.b", edit="Other."),
        *fix(),
    )
    found = upgrade(Effects(results), side(results, FROM, "--from"), side(results, TO, "--to"))
    [change] = plan(results, found).changes

    assert len(edits(found).some) == 2
    assert len(change.averts) == 2
    assert change.rewrite is not None
    text = upgrade_text.as_text(results, found)
    assert f"      - {change.rewrite.before}\n      + {change.rewrite.after}" in text


def test_the_switch_leads_only_where_the_pmap_is_chosen_by_it() -> None:
    """Most programs call pmap as it is, and have no switch to delete."""
    slugs = {"merge-option-gone": "switches.a", "device-put-stackers-gone": "switches.b"}
    titles = {rewrites().by_cause[slug].title for slug in slugs}

    def of(old: str) -> Plan:
        records = [target("0.7.2"), *fix()]
        for slug, clause in slugs.items():
            records += by(slug, clause, edit=f"Mend {slug}.")
            records.append(ran(clause, old, FINE))
        results = read(*records)
        found = upgrade(Effects(results), side(results, old, "--from"), side(results, TO, "--to"))
        made = plan(results, found)
        assert {one.title for one in made.changes} == titles
        return made

    switch, put = (rewrites().by_cause[slug].title for slug in slugs)
    for chosen in ("legacy_pmap@0.8.0", "new_pmap@0.7.2"):
        assert of(chosen).changes[0].title == switch
    for as_it_is in ("new_pmap@0.8.0", "legacy_pmap@0.7.2"):
        assert [one.title for one in of(as_it_is).likely] == [put]
        assert [one.title for one in of(as_it_is).rare] == [switch]


def test_where_nothing_keeps_the_pmap_the_same_program_as_a_shard_map_may_help() -> None:
    rest = [*changed("errors.a", FAILS), ran("errors.a", SHARDED, FINE)]
    fails = raised("KeyError", "i")
    other = [*changed("errors.b", fails), ran("errors.b", SHARDED, fails)]

    found = edits(made(*rest, *other))

    assert [one.text for one in found.some] == [AS_SHARD_MAP]
    assert [entry.smallest for one in found.some for entry in one.averts] == ["errors.a"]
    assert [entry.smallest for entry in found.unknown] == ["errors.b"]


def test_a_new_warning_is_no_reason_to_give_up_pmap() -> None:
    warned = FINE | {"warnings": [{"category": "UserWarning", "message": "Some buffers"}]}
    found = made(*changed("errors.a", warned), ran("errors.a", SHARDED, FINE))

    assert {one.group for one in found.entries} == {Group.WARNS}
    assert not edits(found).some


def test_it_is_told_where_the_same_programs_need_no_edit_as_a_shard_map() -> None:
    both = [ran("errors.a", SHARDED, FINE), ran("errors.b", SHARDED, FINE)]
    records = [*by("one", "errors.a", edit=PUT), *by("other", "errors.b", edit=PUT), *fix()]

    def told_of(*sharded: Record) -> bool:
        [edit] = edits(made(*records, *sharded)).some
        return edit.shard_map_instead

    assert told_of(*both)
    assert not told_of(both[0])
    assert not told_of(both[0], ran("errors.b", SHARDED, FAILS))


def test_what_is_repaired_and_a_fix_that_fails_have_no_edit() -> None:
    refused = finding("raised ValueError: no")
    found = made(
        program("errors.a"),
        ran("errors.a", FROM, FAILS),
        ran("errors.a", TO, FINE),
        *by("one", "errors.b"),
        program("errors.fix", fixes="errors.b"),
        ran("errors.fix", TO, FAILS, verdict="known deviation", findings=[refused]),
    )

    groups = {entry.group for entry in found.entries}
    assert groups == {Group.RAISES, Group.FIX_FAILS, Group.REPAIRED}
    assert edits(found).some == ()
    assert [entry.group for entry in edits(found).unknown] == [Group.RAISES]


def test_a_fix_that_worked_and_fails_now_has_to_be_changed_where_its_cause_says_how() -> None:
    refused = finding("raised TypeError: sizes")

    def edited(before: str, **of_cause: object) -> list[str]:
        gone = deviation(cause="renamed")
        found = made(
            *by("one", "errors.b"),
            cause("renamed", remedies=["errors.other"], **of_cause),
            program("errors.fix", fixes="errors.b"),
            ran("errors.fix", FROM, FINE, verdict=before),
            ran("errors.fix", TO, FAILS, verdict="known deviation", findings=[refused])
            | {"deviation": gone},
            *fix("errors.other"),
        )
        assert [e.group for e in found.entries] == [Group.RAISES, Group.FIX_FAILS]
        return [one.text for one in edits(found).some]

    assert edited("conforms", edit="By position.") == ["By position."]
    assert edited("conforms") == []
    assert edited("known deviation", edit="By position.") == []


def test_parts_of_one_defect_are_counted_once_where_the_whole_shows() -> None:
    found = made(
        *by("whole", "errors.a", "2x2"),
        *by("part", "errors.b", "2x2", part_of="whole"),
        *by("elsewhere", "errors.c", "1x8", part_of="whole"),
    )

    folded = {
        one.title: [part.title for part in parts] for one, parts in found.folded(Group.RAISES)
    }
    assert folded == {"Title of whole": ["Title of part"], "Title of elsewhere": []}
    assert found.counted(Group.RAISES) == 2
    part = next(one for one in found.entries if one.title == "Title of part")
    assert [one for one in upgrade_text.notes(part) if one.endswith(": Title of whole.")]


def test_the_command_tells_the_edits_in_every_form() -> None:
    results = read(*by("one", "errors.a", edit=PUT), *by("none", "errors.b", remedies=[]), *fix())
    found = upgrade(Effects(results), side(results, FROM, ""), side(results, TO, ""))

    text, page = upgrade_text.as_text(results, found), upgrade_text.as_markdown(results, found)
    errors = f"{Group.RAISES.heading}: 2"
    assert text.index(": 1 edit") < text.index(PUT) < text.index(errors)
    assert "averts: Title of one" in text
    assert re.search(r"Without a tested fix: 1\n  Title of none \(", text)
    assert "as errors.b" not in text
    assert "as errors.b" in upgrade_text.as_text(results, found, whole=True)
    assert page.index(": 1 edit") < page.index(PUT) < page.index(f"## {errors}")
    as_json = upgrade_text.as_json(results, found)
    [edit] = as_json["edits"]
    assert (edit["text"], edit["topologies"]) == (PUT, ["1x8"])
    assert edit["remedies"][0]["clause"] == "errors.fix"
    assert [one["cause"] for one in edit["averts"]] == ["one"]
    assert [one["cause"] for one in as_json["no_fix_known"]] == ["none"]
