"""Render an upgrade as text, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.commandline.counting import counted
from reports.analysis.effects.changed import Entry, Group, Upgrade, in_processes
from reports.analysis.effects.edits import Edit, by_title, edits
from reports.analysis.effects.pairs import Side
from reports.analysis.effects.plan import Plan, by_weight, plan
from reports.analysis.effects.remedies import Help, Remedy
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.issues.libraries import libraries_between, without_libraries
from reports.render.text.findings import in_markdown
from reports.render.text.summary import printable
from reports.store.results import Results

MOST_BYTES = 1024 * 1024  # of a comment or a step summary on GitHub
MOST_REMEDIES = 4  # of an entry in text
ALL = "--all"  # the option that prints everything
UNCOMPARED = "Not compared: the old version has no result. This is the result of the new version."
# What differs without an error or a warning.
SILENT = (Group.WRONG_NUMBERS, Group.MOVES_MORE, Group.MEMORY, Group.LIES)

_HELP = {Help.WORKS: "do", Help.FAILS: "no help", Help.UNTRIED: "not tried"}
_RESERVED_BYTES = 200  # for the line that says what was left out

REFUSED = "These tests raised an error before the upgrade."
MORE_TESTS = "in more tests than before"
SECOND_CALL = "The first call works, the second fails."
SECOND_CALL_OF_SOME = "In some tests the first call works, the second fails."


def as_text(results: Results, found: Upgrade, *, whole: bool = False) -> str:
    """Return the likely edits, silent differences, and counts of the rest; `whole` lists
    everything.
    """
    return printable("\n".join(_lines(results, without_libraries(found), whole=whole)))


def as_markdown(results: Results, found: Upgrade) -> str:
    """Return the same as Markdown; what does not fit is counted."""
    kept, size, left = list[str](), 0, 0
    for part in _parts(results, without_libraries(found)):
        block = printable("\n".join(part) + "\n\n")
        more = len(block.encode("utf-8", "replace"))
        if left or size + more > MOST_BYTES - _RESERVED_BYTES:
            left += 1
            continue
        kept.append(block)
        size += more
    if left:
        kept.append(f"{left} more parts are left out here: `--json` has all of it.\n")
    return "".join(kept).rstrip("\n") + "\n"


def as_json(results: Results, found: Upgrade) -> dict[str, Any]:
    """Return the upgrade as one JSON object with every program and topology."""
    known = edits(found)
    return {
        "from": _side(found.old),
        "to": _side(found.new),
        "compared": found.compared,
        "same": found.same,
        "not_compared": [{"why": why, "cells": count} for why, count in found.missing],
        "edits": [_edit(one) for one in known.some],
        "no_fix_known": [_averted(one) for one in known.unknown],
        "groups": [
            {"group": group.value, "entries": [_entry(results, one) for one in entries]}
            for group, entries in found.groups
        ],
    }


def where(entry: Entry) -> str:
    """Return how many programs show it, and on which topologies."""
    return f"{counted(entry.programs, 'test')} on {', '.join(entry.topologies)}"


def notes(entry: Entry) -> Iterator[str]:
    """Yield what a reader must know beside the sentence."""
    if entry.second_call:
        yield SECOND_CALL if entry.always_second_call else SECOND_CALL_OF_SOME
    if entry.whole is not None:
        yield f"The same defect as: {entry.whole.title.rstrip('.')}."
    if not entry.compared:
        yield UNCOMPARED
    elif not entry.ran_before:
        yield REFUSED
    elif entry.met_before:
        yield "Some tests show it on the old side too; more do now."


def command(results: Results, entry: Entry) -> str:
    """Return the command that shows the smallest program: the known issue's file, or a clause."""
    if entry.cause is not None and entry.cause.file:
        return entry.cause.file
    return f"pmap-conformance show {entry.smallest}"


def helps(remedy: Remedy) -> str:
    """Return a remedy and whether it works there, in a line."""
    under = f" under {remedy.implementation}" if remedy.implementation else ""
    return f"{remedy.title.rstrip('.')}: {remedy.result}{under}"


def summary(found: Upgrade) -> str:
    """Return the counts in one sentence."""
    each = [f"{group.heading}: {found.counted(group)}" for group, _ in found.groups]
    same = f"{found.same} of {counted(found.compared, 'test')} give the same result"
    return "; ".join([*each, same]) + "."


def missing(found: Upgrade) -> str:
    """Return what was not compared, and why; empty if everything was."""
    return "; ".join(f"{counted(count, 'test run')} {why}" for why, count in found.missing)


def _lines(results: Results, found: Upgrade, *, whole: bool) -> Iterator[str]:
    known = plan(results, found)
    yield f"{_name(found.old)} → {_name(found.new)}"
    yield f"{found.same} of {counted(found.compared, 'test')} give the same result"
    if lines := list(_outdated(found)):
        yield ""
        yield "Upgrade these libraries with JAX"
        yield from (f"  {line}" for line in lines)
    yield from _change_lines(known, whole=whole)
    if lines := list(_libraries(found)):
        yield ""
        yield "Libraries"
        yield from (f"  {line}" for line in lines)
    silent = by_title(silently(results, found))
    if silent:
        yield ""
        yield f"What differs silently: {len(silent)}"
        for title, some in silent.items():
            effects = ", ".join(entry.effect.words for entry in some)
            yield f"  {title} ({effects}{_before(some[0])})"
    if known.unknown:
        yield ""
        yield f"Without a tested fix: {len(known.unknown)}"
        for entry in known.unknown:
            yield f"  {entry.title} ({entry.effect.words}, with {in_processes([entry])})"
    yield ""
    yield "Everything that changes: " + summary(found)
    if not whole:
        yield f"{ALL} prints all edits, and every change with the tests that show it."
    else:
        for group, entries in found.groups:
            yield from _group_lines(results, found, group, by_weight(results, entries))
    if found.missing:
        yield ""
        yield f"Not compared: {missing(found)}"


def _outdated(found: Upgrade) -> Iterator[str]:
    """Yield what raises in old versions of libraries: certain for who uses them, so it is first."""
    between = libraries_between(found.old.jax, found.new.jax)
    yield from (one.sentence for one in between.outdated)


def _libraries(found: Upgrade) -> Iterator[str]:
    """Yield what follows the version of a library, whichever the JAX."""
    for one in libraries_between(found.old.jax, found.new.jax).changes:
        since = f"When you upgrade {one.library} to {one.since} or later"
        yield f"{since}: {one.says} See {one.causes[0]}."


def _group_lines(
    results: Results, found: Upgrade, group: Group, entries: Sequence[Entry]
) -> Iterator[str]:
    yield ""
    yield f"{group.heading}: {found.counted(group)}"
    for entry in entries:
        yield f"  {entry.title}"
        if entry.sentence:
            yield f"      {entry.sentence}"
        for note in notes(entry):
            yield f"      {note}"
        yield f"      {where(entry)}, as {entry.smallest}: {entry.example.shown.sentence}"
        for one in entry.remedies[:MOST_REMEDIES]:
            yield f"      {_HELP[one.help]}: {helps(one)} ({one.clause})"
        yield f"      see: {command(results, entry)}"


def silently(results: Results, found: Upgrade) -> list[Entry]:
    """Return what differs without an error or a warning in programs that ran before, the most
    severe and common first; and what raised before and returns wrong values now.
    """
    some = (
        whole
        for group in SILENT
        for whole, _ in found.folded(group)
        if whole.ran_before or group is Group.WRONG_NUMBERS
    )
    return by_weight(results, some)


def _before(entry: Entry) -> str:
    """Return what the programs of an entry did before; empty if they just ran."""
    if not entry.ran_before:
        return "; an error before"
    return f"; {MORE_TESTS}" if entry.met_before else ""


def _change_lines(known: Plan, *, whole: bool) -> Iterator[str]:
    shown = known.changes if whole else known.likely
    if known.changes:
        yield ""
        yield f"What to change: {counted(len(known.changes), 'edit')}, the most likely first"
        yield f"  {rewrites().names}"
    for one in shown:
        effects = ", ".join(effect.words for effect in one.effects)
        yield ""
        yield f"  {one.title} ({effects}; {one.place.value})"
        if one.rewrite is not None:
            for line in one.rewrite.before.splitlines():
                yield f"      - {line}"
            for line in one.rewrite.after.splitlines():
                yield f"      + {line}"
            if one.rewrite.note:
                yield f"      {one.rewrite.note}"
        for issue in by_title(one.averts):
            yield f"      averts: {issue}"
    if left := len(known.changes) - len(shown):
        yield ""
        yield f"  {counted(left, 'less likely edit')} more: {ALL}"


def _edit_parts(results: Results, found: Upgrade) -> Iterator[list[str]]:
    known = plan(results, found)
    if known.changes:
        yield [f"## What to change: {counted(len(known.changes), 'edit')}, the most likely first"]
        for one in known.changes:
            lines = [f"### {in_markdown(one.title)}", ""]
            if one.rewrite is not None:
                lines += ["```diff", *(f"- {line}" for line in one.rewrite.before.splitlines())]
                lines += [*(f"+ {line}" for line in one.rewrite.after.splitlines()), "```", ""]
                lines += [one.rewrite.note, ""] if one.rewrite.note else []
            averted = "; ".join(map(_averts, one.edits))
            where = in_processes(one.averts)
            yield [*lines, f"*Averts, with {where}:* {in_markdown(averted)}."]
    if known.unknown:
        lines = [
            f"- {in_markdown(one.title)} ({one.effect.words}, with {in_processes([one])})"
            for one in known.unknown
        ]
        yield [f"## Without a tested fix: {len(known.unknown)}", "", *lines]


def _averts(edit: Edit) -> str:
    """Return the effects that an edit averts, each known issue once."""
    return "; ".join(
        f"{title} ({', '.join(one.effect.words for one in some)})"
        for title, some in by_title(edit.averts).items()
    )


def _parts(results: Results, found: Upgrade) -> Iterator[list[str]]:
    yield [f"# {_name(found.old)} → {_name(found.new)}", "", in_markdown(summary(found))]
    if lines := [f"- {in_markdown(line)}" for line in _outdated(found)]:
        yield ["## Upgrade these libraries with JAX", "", *lines]
    yield from _edit_parts(results, found)
    if lines := [f"- {in_markdown(line)}" for line in _libraries(found)]:
        yield ["## Libraries", "", *lines]
    if found.missing:
        yield [f"Not compared: {in_markdown(missing(found))}."]
    for group, entries in found.groups:
        yield [f"## {group.heading}: {found.counted(group)}"]
        for entry in entries:
            yield list(_entry_lines(results, entry))


def _entry_lines(results: Results, entry: Entry) -> Iterator[str]:
    yield f"### {in_markdown(entry.title)}"
    yield ""
    sentences = [entry.sentence, *notes(entry)]
    if any(sentences):
        yield in_markdown(" ".join(filter(None, sentences)))
        yield ""
    yield f"- {where(entry)}; `{entry.smallest}`: {in_markdown(entry.example.shown.sentence)}"
    for one in entry.remedies[:MOST_REMEDIES]:
        yield f"- {_HELP[one.help].capitalize()}: {in_markdown(helps(one))} (`{one.clause}`)"
    yield f"- See: `{command(results, entry)}`"


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "text": edit.text,
        "topologies": list(edit.topologies),
        "shard_map_instead": edit.shard_map_instead,
        "remedies": [
            {
                "clause": remedy.clause,
                "implementation": remedy.implementation,
                "works": list(remedy.works),
            }
            for remedy in edit.remedies
        ],
        "averts": [_averted(entry) for entry in edit.averts],
    }


def _averted(entry: Entry) -> dict[str, Any]:
    return {
        "effect": entry.effect.value,
        "title": entry.title,
        "cause": entry.cause.cause if entry.cause else "",
        "topologies": list(entry.topologies),
    }


def _entry(results: Results, entry: Entry) -> dict[str, Any]:
    return {
        "effect": entry.effect.value,
        "title": entry.title,
        "sentence": entry.sentence,
        "cause": entry.cause.cause if entry.cause else "",
        "part_of": entry.whole.cause if entry.whole else "",
        "claim": entry.claim,
        "explained_by": entry.by.value,
        "programs": entry.programs,
        "topologies": list(entry.topologies),
        "second_call": entry.second_call,
        "smallest": entry.smallest,
        "program": command(results, entry),
        "remedies": [
            {
                "clause": one.clause,
                "title": one.title,
                "implementation": one.implementation,
                "works": list(one.works),
                "fails": list(one.fails),
                "helps": one.help is Help.WORKS,
            }
            for one in entry.remedies
        ],
        "cells": [
            {
                "clause": one.clause,
                "topology": one.topology,
                "effect": one.shown.effect.value,
                "sentence": one.shown.sentence,
                "step": one.shown.step,
                "verdict": one.verdict.value,
                "compared": one.before is not None,
            }
            for one in entry.seen
        ],
    }


def _side(side: Side) -> dict[str, str]:
    return {"implementation": side.implementation, "jax": side.jax}


def _name(side: Side) -> str:
    return f"{side.implementation} on jax {side.jax}"
