"""Render proposed changes of the deviation entries: TOML with comments, or JSON."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
            for what, places in (("conforms", excess.conforms), ("is seen", excess.excuses)):
                if places:
                    yield f"#     {what}: {'; '.join(places)}"
            if excess.other:
                yield f"#     something else is seen: {'; '.join(excess.other)}"
    for cell in found.unproven:
        yield f"# unproven, which no entry excuses: {cell}"
    yield (
        f"# {found.judged} cells judged: {len(found.add)} entries to add, {len(found.correct)} to "
        f"correct, {len(found.narrow)} to narrow, {len(found.drop)} to drop"
    )


def named(entry: Deviation) -> str:
    """Describe an entry in a line: its file, number and subject."""
    return f"{entry.where}: {', '.join(entry.clause)} under {', '.join(entry.implementation)}"


def _toml(one: Entry, review: datetime.date) -> Iterator[str]:
    yield "[[deviation]]"
    yield f"clause = {_text(one.clause)}"
    yield f"implementation = {_texts(one.implementations)}"
    if len(one.cells) == 1:
        ((versions, topologies),) = one.cells
        yield f"jax = {_text(versions)}"
        if topologies != ("*",):
            yield f"topology = {_texts(topologies)}"
    else:
        said = (
            f"{{ jax = {_text(versions)}, topology = {_texts(topologies)} }}"
            for versions, topologies in one.cells
        )
        yield f"cells = [{', '.join(said)}]"
    for name, versions in one.packages.items():
        yield f"packages.{_key(name)} = {_text(versions)}"
    for key, value in one.seen.items():
        if key == "steps":
            for step, table in value.items():
                yield f"steps.{json.dumps(step, ensure_ascii=False)} = {_table(table)}"
        else:
            yield f"{key} = {_table(value)}"
    if isinstance(one.processes, Mapping):
        for step, some in one.processes.items():
            yield f"processes.{json.dumps(step, ensure_ascii=False)} = {_numbers(some)}"
    elif one.processes != "all":
        yield f"processes = {_numbers(one.processes)}"
    hint = "one that `pmap-conformance causes list` lists, or a new one"
    if one.like is not None:
        hint = f"as {one.like[0]}: {_text(one.like[1])}"
    yield f'cause = ""  # {hint}'
    yield f"review = {review.isoformat()}"
    if not one.explains:
        yield "# it does not excuse all of these cells yet: say what is seen by hand"


def _table(table: Mapping[str, Any]) -> str:
    """Return a table as one line of TOML."""
    return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in table.items())} }}"


def _value(one: Any) -> str:
    if isinstance(one, str):
        return _text(one)
    if isinstance(one, Mapping):
        return _table(one)
    if isinstance(one, list):
        return f"[{', '.join(map(_value, one))}]"
    return json.dumps(one)


def _key(name: str) -> str:
    """Return a package's name as a key of TOML, bare if possible."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)


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
    return json.dumps(text, ensure_ascii=not text.isprintable())


def record(found: Proposal) -> dict[str, Any]:
    """Return everything as JSON."""

    def excess(one: Excess) -> dict[str, Any]:
        return {
            "entry": one.entry.where,
            "clause": list(one.entry.clause),
            "implementation": list(one.entry.implementation),
            "conforms": list(one.conforms),
            "excuses": list(one.excuses),
            "something_else": list(one.other),
            "corrections": [
                {"field": key, "old": old, "new": new} for key, old, new in one.corrections
            ],
        }

    def entry(one: Entry) -> dict[str, Any]:
        return {
            "file": one.file,
            "clause": one.clause,
            "implementation": list(one.implementations),
            "seen": dict(one.seen),
            "cells": [{"jax": jax, "topology": list(some)} for jax, some in one.cells],
            "processes": one.processes,
            "packages": dict(one.packages),
            "explains": one.explains,
            "cause_like": one.like[1] if one.like else None,
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
