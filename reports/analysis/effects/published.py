"""What each known issue changes between any two sides of published results, as one small file.

Reading a hundred thousand cells takes seconds; `pmap-conformance scan` needs a few hundred lines of
their content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from reports.analysis.effects.changed import Entry
from reports.analysis.effects.effect import DIFFERENCES, Effect
from reports.analysis.effects.explained import By
from reports.analysis.effects.pairs import Effects, Side, sides
from reports.analysis.effects.upgrade import upgrade
from reports.store.input_error import InputError
from reports.store.order import LEGACY
from reports.store.results import Results
from reports.store.shown import ONE

FILE = Path(__file__).parents[2] / "published" / "changes.json"
SCHEMA = 1

# What a program feels that ran before; the words are those of the site.
SEVERITY: Mapping[Effect, str] = {one: one.words for one in DIFFERENCES}


class PublishedError(InputError):
    """A side was not run, or the file is invalid; the message names the available sides."""


@dataclass(frozen=True, slots=True)
class IssueChange:
    """One effect of a known issue: its severity, and whether its programs raised before as well.

    `processes` are the numbers of processes for which it matters: one, several, or both; both, if
    only one process was tested.
    """

    cause: str
    severity: str
    processes: tuple[str, ...]
    refused: bool


def as_json(results: Results, matrix: bytes) -> dict[str, Any]:
    """Return what changes between any two sides of which the second has no older JAX."""
    effects = Effects(results)
    changes: dict[IssueChange, int] = {}
    pairs: dict[str, list[int]] = {}
    for old, new in _pairs(sides(results)):
        some = changes_between(effects, old, new)
        pairs[f"{old} {new}"] = [changes.setdefault(one, len(changes)) for one in some]
    return {
        "schema": SCHEMA,
        "matrix": hashlib.sha256(matrix).hexdigest(),
        "sides": [str(one) for one in sides(results)],
        "changes": [[one.cause, one.severity, list(one.processes), one.refused] for one in changes],
        "pairs": pairs,
    }


def changes_between(effects: Effects, old: Side, new: Side) -> tuple[IssueChange, ...]:
    """Return what known issues change from one side to another."""
    return tuple(dict.fromkeys(_changes(upgrade(effects, old, new).entries)))


def as_text(found: Mapping[str, Any]) -> str:
    """Return the object in lines, so that versions of the file can be compared."""
    parts = []
    for key, value in found.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(one)}" for one in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n ]")
        elif isinstance(value, dict):
            lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            parts.append(f"{json.dumps(key)}: {{\n{lines}\n }}")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{" + ",\n ".join(parts) + "}\n"


def load_changes(old: str, new: str, file: Path = FILE) -> tuple[IssueChange, ...]:
    """Return what changes from one side to another, both written `new_pmap@0.9.0`.

    PublishedError if the file cannot be read, or has no such side or pair.
    """
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PublishedError(f"{file}: {error}") from error
    there: list[str] = raw["sides"]
    for option, text in (("--from", old), ("--to", new)):
        if text not in there:
            raise PublishedError(f"{option} {text}: {_known(text, there)}")
    key = f"{old} {new}"
    if old == new:
        return ()
    if key not in raw["pairs"]:
        raise PublishedError(f"--to {new}: name the JAX of {old} or a newer one")
    some = (raw["changes"][at] for at in raw["pairs"][key])
    return tuple(
        IssueChange(cause, severity, tuple(where), refused)
        for cause, severity, where, refused in some
    )


def _known(text: str, there: Iterable[str]) -> str:
    implementation, _, _ = text.partition("@")
    versions = [one.partition("@")[2] for one in there if one.startswith(f"{implementation}@")]
    if not versions:
        names = ", ".join(dict.fromkeys(one.partition("@")[0] for one in there))
        return f"write IMPLEMENTATION@VERSION; there are {names}"
    return f"the published matrix has {implementation} on JAX {', '.join(versions)}"


def _pairs(some: Iterable[Side]) -> Iterator[tuple[Side, Side]]:
    known = list(some)
    for old in known:
        for new in known:
            back = new.implementation == LEGACY != old.implementation
            if old is not new and not back and Version(new.jax) >= Version(old.jax):
                yield old, new


def _changes(entries: Iterable[Entry]) -> Iterator[IssueChange]:
    """Yield the changes that a known issue causes on the new side, without fixed ones."""
    for one in entries:
        if one.cause is None or one.by is not By.CAUSE or one.effect not in SEVERITY:
            continue
        where = {"one" if place == ONE else "several" for place in one.matters}
        yield IssueChange(
            one.cause.cause, SEVERITY[one.effect], tuple(sorted(where)), not one.ran_before
        )
