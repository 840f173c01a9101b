"""An upgrade, as lines for people, as Markdown for a pull request, as one object for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.effects.changed import Entry, Group, Upgrade, in_processes
from reports.effects.edits import Edit, Edits, by_title, edits
from reports.effects.pairs import Side
from reports.effects.remedies import Help, Remedy
from reports.findings import in_markdown
from reports.reading.results import Results
from reports.summary import printable

MOST_BYTES = 1024 * 1024  # of a comment or a step summary on GitHub
MOST_REMEDIES = 4  # of an entry in text
UNCOMPARED = "Not compared, as the old side was not run or says nothing: this is the new one alone."

INSTEAD = "as a jax.shard_map the same programs need no such edit"
_HELP = {Help.WORKS: "do", Help.FAILS: "no help", Help.UNTRIED: "not tried"}
_RESERVED_BYTES = 200  # for the line that says what was left out

REFUSED = "These programs raised before: none that ran gives other numbers by it."


def as_text(results: Results, found: Upgrade) -> str:
    """The gravest first, each entry with what it is, where, a program, and what helps."""
    return printable("\n".join(_lines(results, found)))


def as_markdown(results: Results, found: Upgrade) -> str:
    """The same as a page; what does not fit is counted."""
    kept, size, left = list[str](), 0, 0
    for part in _parts(results, found):
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
    """The upgrade as one JSON object; every program and topology is listed."""
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


def counted(count: int, word: str) -> str:
    """A number with its word: "1 program", "3 programs"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def where(entry: Entry) -> str:
    """How many programs show it, and on which topologies."""
    return f"{counted(entry.programs, 'program')} on {', '.join(entry.topologies)}"


def notes(entry: Entry) -> Iterator[str]:
    """What a reader must know beside the sentence."""
    if entry.second_call:
        yield "The first call works, the second fails."
    if entry.whole is not None:
        yield f"The same defect as: {entry.whole.title.rstrip('.')}."
    if not entry.compared:
        yield UNCOMPARED
    elif not entry.ran_before:
        yield REFUSED


def command(results: Results, entry: Entry) -> str:
    """How the smallest program is seen: the cause's file, or a clause shown whole."""
    if entry.cause is not None and entry.cause.file:
        return entry.cause.file
    return f"pmap-conformance show {entry.smallest}"


def helps(remedy: Remedy) -> str:
    """A remedy and whether it works there, in a line."""
    under = f" under {remedy.implementation}" if remedy.implementation else ""
    return f"{remedy.title.rstrip('.')}: {remedy.says}{under}"


def summary(found: Upgrade) -> str:
    """The counts in one sentence."""
    each = [f"{group.value}: {found.counted(group)}" for group, _ in found.groups]
    same = f"{found.same} of {counted(found.compared, 'program')} do the same"
    return "; ".join([*each, same]) + "."


def missing(found: Upgrade) -> str:
    """What was not compared, and why; empty where everything was."""
    return "; ".join(f"{counted(count, 'cell')} {why}" for why, count in found.missing)


def _lines(results: Results, found: Upgrade) -> Iterator[str]:
    yield f"{_name(found.old)} → {_name(found.new)}"
    yield summary(found)
    yield from _edit_lines(edits(found))
    for group, entries in found.groups:
        yield ""
        yield f"{group.value}: {found.counted(group)}"
        for entry in entries:
            yield f"  {entry.title}"
            if entry.sentence:
                yield f"      {entry.sentence}"
            for note in notes(entry):
                yield f"      {note}"
            yield f"      {where(entry)}, as {entry.smallest}: {entry.example.felt.sentence}"
            for one in entry.remedies[:MOST_REMEDIES]:
                yield f"      {_HELP[one.help]}: {helps(one)} ({one.clause})"
            yield f"      see: {command(results, entry)}"
    if found.missing:
        yield ""
        yield f"not compared: {missing(found)}"


def _edit_lines(known: Edits) -> Iterator[str]:
    if known.some:
        yield ""
        yield f"what to change: {counted(len(known.some), 'edit')}, what averts the gravest first"
    for one in known.some:
        yield f"  {one.text}"
        yield f"      averts, with {one.where}: {_averts(one)}"
        if one.tried:
            yield f"      shown to work with {one.tried} only"
        if one.shard_map_instead:
            yield f"      {INSTEAD}"
    if known.unknown:
        yield ""
        yield f"no fix known here: {len(known.unknown)}"
        for entry in known.unknown:
            yield f"  {entry.title} ({entry.group.value}, with {in_processes([entry])})"


def _edit_parts(known: Edits) -> Iterator[list[str]]:
    if known.some:
        lines = [
            f"- {in_markdown(one.text)} *Averts, with {one.where}:* {in_markdown(_averts(one))}."
            for one in known.some
        ]
        yield [f"## What to change: {counted(len(known.some), 'edit')}", "", *lines]
    if known.unknown:
        lines = [
            f"- {in_markdown(one.title)} ({one.group.value}, with {in_processes([one])})"
            for one in known.unknown
        ]
        yield [f"## No fix known here: {len(known.unknown)}", "", *lines]


def _averts(edit: Edit) -> str:
    """The effects that an edit averts, each cause once."""
    return "; ".join(
        f"{title} ({', '.join(one.effect.value for one in some)})"
        for title, some in by_title(edit.averts).items()
    )


def _parts(results: Results, found: Upgrade) -> Iterator[list[str]]:
    yield [f"# {_name(found.old)} → {_name(found.new)}", "", in_markdown(summary(found))]
    yield from _edit_parts(edits(found))
    if found.missing:
        yield [f"Not compared: {in_markdown(missing(found))}."]
    for group, entries in found.groups:
        yield [f"## {_capital(group)}: {found.counted(group)}"]
        for entry in entries:
            yield list(_entry_lines(results, entry))


def _entry_lines(results: Results, entry: Entry) -> Iterator[str]:
    yield f"### {in_markdown(entry.title)}"
    yield ""
    said = [entry.sentence, *notes(entry)]
    if any(said):
        yield in_markdown(" ".join(filter(None, said)))
        yield ""
    yield f"- {where(entry)}; `{entry.smallest}`: {in_markdown(entry.example.felt.sentence)}"
    for one in entry.remedies[:MOST_REMEDIES]:
        yield f"- {_HELP[one.help].capitalize()}: {in_markdown(helps(one))} (`{one.clause}`)"
    yield f"- See: `{command(results, entry)}`"


def _edit(one: Edit) -> dict[str, Any]:
    return {
        "text": one.text,
        "topologies": list(one.topologies),
        "shard_map_instead": one.shard_map_instead,
        "remedies": [
            {
                "clause": remedy.clause,
                "implementation": remedy.implementation,
                "works": list(remedy.works),
            }
            for remedy in one.remedies
        ],
        "averts": [_averted(entry) for entry in one.averts],
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
                "effect": one.felt.effect.value,
                "sentence": one.felt.sentence,
                "step": one.felt.step,
                "verdict": one.verdict.value,
                "compared": one.before is not None,
            }
            for one in entry.seen
        ],
    }


def _side(of: Side) -> dict[str, str]:
    return {"implementation": of.implementation, "jax": of.jax}


def _name(of: Side) -> str:
    return f"{of.implementation} on jax {of.jax}"


def _capital(group: Group) -> str:
    return group.value[:1].upper() + group.value[1:]
