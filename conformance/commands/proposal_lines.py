"""Render proposed changes of the deviation entries: TOML with comments, or JSON."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.commandline.counting import counted
from conformance.commands.propose import Entry, Excess, Proposal
from conformance.judging.deviations import Deviation
from conformance.judging.seen import Processes

REVIEW_IN_DAYS = 120


def lines(found: Proposal) -> Iterator[str]:
    """Yield the entries to add as TOML by module, and in comments those to narrow and to remove."""
    file = ""
    review = datetime.date.today() + datetime.timedelta(days=REVIEW_IN_DAYS)
    for one in sorted(found.add, key=lambda entry: (entry.file, entry.clause)):
        if one.file != file:
            file = one.file
            yield f"# add to {file}"
            yield ""
        yield from _toml(one, review)
        yield ""
    for one in found.reference:
        yield (
            f"# {one.clause} under {', '.join(one.implementations)}: legacy pmap is the reference "
            "here: correct the test's expectation instead"
        )
    for excess in found.correct:
        changes = (f"{key} {_value(old)} -> {_value(new)}" for key, old, new in excess.corrections)
        yield f"# correct {named(excess.entry)}: {', '.join(changes)}"
    for title, some in (("narrow", found.narrow), ("drop", found.drop)):
        for excess in some:
            yield f"# {title} {named(excess.entry)}"
            if title == "drop":  # an entry may be about releases and topologies that were not run
                yield f"#     cells judged: {excess.judged}, seen in none; run the entry's others"
            for what, places in (("conforms", excess.conforms), ("is seen", excess.excuses)):
                if places:
                    yield f"#     {what}: {'; '.join(places)}"
            if excess.other:
                yield f"#     something else is seen: {'; '.join(excess.other)}"
    for cell in found.unproven:
        yield f"# unproven, which no entry excuses: {cell}"
    yield (
        f"# {counted(found.judged, 'cell')} judged: "
        f"{counted(len(found.add), 'entry', 'entries')} to add, {len(found.correct)} to "
        f"correct, {len(found.narrow)} to narrow, {len(found.drop)} to drop"
    )


def named(entry: Deviation) -> str:
    """Describe an entry in a line: its file, number and subject."""
    return f"{entry.where}: {', '.join(entry.clause)} under {', '.join(entry.implementation)}"


def _toml(entry: Entry, review: datetime.date) -> Iterator[str]:
    yield "[[deviation]]"
    yield f"clause = {_text(entry.clause)}"
    yield f"implementation = {_texts(entry.implementations)}"
    if len(entry.cells) == 1:
        ((versions, topologies),) = entry.cells
        yield f"jax = {_text(versions)}"
        if topologies != ("*",):
            yield f"topology = {_texts(topologies)}"
    else:
        text = (
            f"{{ jax = {_text(versions)}, topology = {_texts(topologies)} }}"
            for versions, topologies in entry.cells
        )
        yield f"cells = [{', '.join(text)}]"
    for name, versions in entry.packages.items():
        yield f"packages.{_key(name)} = {_text(versions)}"
    for key, value in entry.seen.items():
        if key == "steps":
            for step, table in value.items():
                yield f"steps.{_quoted(step)} = {_table(table)}"
        else:
            yield f"{key} = {_table(value)}"
    if isinstance(entry.processes, Mapping):
        for step, some in entry.processes.items():
            yield f"processes.{_quoted(step)} = {_numbers(some)}"
    elif entry.processes != "all":
        yield f"processes = {_numbers(entry.processes)}"
    hint = "one that `pmap-conformance causes list` lists, or a new one"
    if entry.like is not None:
        hint = f"as {entry.like[0]}: {_text(entry.like[1])}"
    yield f'cause = ""  # {hint}'
    yield f"review = {review.isoformat()}"
    if not entry.explains:
        yield "# it does not excuse all of these cells yet: say what is seen by hand"


def _table(table: Mapping[str, Any]) -> str:
    """Return a table as one line of TOML."""
    return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in table.items())} }}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return _table(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def _key(name: str) -> str:
    """Return a package's name as a key of TOML, bare if possible."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _quoted(name)


def _numbers(some: Processes) -> str:
    return _text(some) if isinstance(some, str) else str(list(some))


def _texts(some: Sequence[str]) -> str:
    return _text(some[0]) if len(some) == 1 else f"[{', '.join(map(_text, some))}]"


def _text(text: str) -> str:
    """Return a text in TOML, as a literal if possible, so that a pattern stays readable."""
    if "\\" in text and text.isprintable():
        for quote in ("'", "'''"):
            if quote not in text and not text.endswith("'"):
                return f"{quote}{text}{quote}"
    return _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def record(found: Proposal) -> dict[str, Any]:
    """Return everything as JSON."""

    def excess(excess: Excess) -> dict[str, Any]:
        return {
            "entry": excess.entry.where,
            "clause": list(excess.entry.clause),
            "implementation": list(excess.entry.implementation),
            "conforms": list(excess.conforms),
            "excuses": list(excess.excuses),
            "something_else": list(excess.other),
            "corrections": [
                {"field": key, "old": old, "new": new} for key, old, new in excess.corrections
            ],
        }

    def entry(entry: Entry) -> dict[str, Any]:
        return {
            "file": entry.file,
            "clause": entry.clause,
            "implementation": list(entry.implementations),
            "seen": dict(entry.seen),
            "cells": [{"jax": jax, "topology": list(some)} for jax, some in entry.cells],
            "processes": entry.processes,
            "packages": dict(entry.packages),
            "explains": entry.explains,
            "cause_like": entry.like[1] if entry.like else None,
        }

    return {
        "judged": found.judged,
        "add": list(map(entry, found.add)),
        "reference": list(map(entry, found.reference)),
        "correct": [excess(one) for one in found.correct],
        "narrow": [excess(one) for one in found.narrow],
        "drop": [excess(one) for one in found.drop],
        "unproven": found.unproven,
    }
