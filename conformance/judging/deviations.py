"""Where JAX does not do what the document says, as entries with evidence.

An entry is evidence about JAX, never a way to silence a failing check: it must match a cell of the
catalogue, the cell must deviate, and what is seen must be what the entry says is seen.
"""

from __future__ import annotations

import datetime
import functools
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from conformance.catalogue.names import COLUMNS

KINDS = ("documentation", "implementation", "platform")
# One file per section, beside the modules whose clauses it is about.
FOLDER = Path(__file__).parents[1] / "sections"
FILES = "*/*.toml"


@dataclass(frozen=True, slots=True)
class Deviation:
    """One entry: which cells, what is seen in them, why, and when to look again.

    `clause`, `platform` and `topology` are shell patterns, `jax` a version range. `saw` is a
    regular expression that must be found in what every failed comparison saw (for a fault, in its
    text), so that nothing new can hide behind an old entry. `review` is a date.
    """

    clause: tuple[str, ...]
    implementation: tuple[str, ...]
    saw: str
    why: str
    link: str
    kind: str
    review: datetime.date
    jax: str = ""
    platform: tuple[str, ...] = ("*",)
    topology: tuple[str, ...] = ("*",)
    where: str = field(default="a deviation entry", compare=False)  # its file and number

    def names(self, clause: str) -> bool:
        """Whether the entry is about this clause, under whatever else it asks."""
        return any(fnmatchcase(clause, pattern) for pattern in self.clause)

    def matches(
        self, clause: str, implementation: str, jax: str, platform: str, topology: str
    ) -> bool:
        """Whether the entry is about this cell."""
        return (
            self.names(clause)
            and implementation in self.implementation
            and _within(self.jax, jax)
            and any(fnmatchcase(platform, p) for p in self.platform)
            and any(fnmatchcase(topology, t) for t in self.topology)
        )

    def explains(self, text: str) -> bool:
        """Whether `text` is what the entry says is seen."""
        return re.search(self.saw, text, re.DOTALL) is not None


class DeviationError(ValueError):
    """An entry that cannot be read or that matches nothing."""


def load_all() -> tuple[Deviation, ...]:
    """The entries of every section."""
    files = sorted(FOLDER.glob(FILES))
    return tuple(entry for file in files for entry in load(file))


def load(path: Path) -> tuple[Deviation, ...]:
    """The entries of a TOML file; DeviationError names the entry and what is wrong with it."""
    with path.open("rb") as file:
        data = tomllib.load(file)
    entries = data.pop("deviation", [])
    if data:
        raise DeviationError(f"{path.name}: unknown table {', '.join(data)}; use [[deviation]]")
    return tuple(_entry(path.name, number, raw) for number, raw in enumerate(entries, 1))


def unmatched(
    entries: Iterable[Deviation], cells: Sequence[tuple[str, str, str, str, str]]
) -> list[Deviation]:
    """The entries that match none of `cells` (clause, implementation, jax, platform, topology)."""
    by_clause: dict[str, list[tuple[str, str, str, str, str]]] = {}
    for cell in cells:
        by_clause.setdefault(cell[0], []).append(cell)
    return [
        entry
        for entry in entries
        if not any(
            entry.matches(*cell)
            for clause, some in by_clause.items()
            if entry.names(clause)
            for cell in some
        )
    ]


def of_no_clause(entries: Iterable[Deviation], clauses: Iterable[str]) -> list[str]:
    """What is said of each entry that names a clause, or a pattern of them, that does not exist."""
    known = list(clauses)
    return [
        f"{entry.where}: no clause is called {pattern}"
        for entry in entries
        for pattern in entry.clause
        if not any(fnmatchcase(id, pattern) for id in known)
    ]


def matching(
    entries: Iterable[Deviation],
    clause: str,
    implementation: str,
    jax: str,
    platform: str,
    topology: str,
) -> tuple[Deviation, ...]:
    """The entries about one cell; DeviationError where two claim it."""
    found = tuple(e for e in entries if e.matches(clause, implementation, jax, platform, topology))
    if len(found) > 1:
        raise DeviationError(
            f"{len(found)} deviation entries claim {clause} under {implementation} on jax "
            f"{jax}, {topology} ({'; '.join(e.where for e in found)}): narrow them so that one does"
        )
    return found


@functools.lru_cache(maxsize=4096)  # a run asks the same few questions for every cell
def _within(versions: str, jax: str) -> bool:
    return SpecifierSet(versions).contains(Version(jax), prereleases=True)


def _entry(file: str, number: int, raw: dict[str, Any]) -> Deviation:
    where = f"{file}, entry {number} ({raw.get('clause', 'no clause')})"
    known = {f.name for f in fields(Deviation)} - {"where"}
    required = {"clause", "implementation", "saw", "why", "link", "kind", "review"}
    if raw.keys() - known or required - raw.keys():
        raise DeviationError(
            f"{where}: unknown keys {sorted(raw.keys() - known)}, "
            f"missing keys {sorted(required - raw.keys())}"
        )
    lists = ("clause", "implementation", "platform", "topology")
    for key in raw.keys() - {"review"}:
        parts = raw[key] if key in lists and isinstance(raw[key], list) else [raw[key]]
        if not parts or not all(isinstance(part, str) and part for part in parts):
            several = ", or several in a list" if key in lists else ""
            raise DeviationError(f"{where}: {key} must be a text{several}")
    for key in lists:
        if key in raw:
            value = raw[key]
            raw[key] = (value,) if isinstance(value, str) else tuple(value)
    unknown = set(raw["implementation"]) - set(COLUMNS)
    if unknown:
        raise DeviationError(f"{where}: no implementation is called {', '.join(sorted(unknown))}")
    if raw["kind"] not in KINDS:
        raise DeviationError(f"{where}: kind {raw['kind']!r} is none of {', '.join(KINDS)}")
    if type(raw["review"]) is not datetime.date:
        raise DeviationError(f"{where}: review must be a date, written 2027-01-31 without quotes")
    try:
        SpecifierSet(raw.get("jax", ""))
        re.compile(raw["saw"])
    except (InvalidSpecifier, re.error) as error:
        raise DeviationError(f"{where}: {error}") from error
    return Deviation(**raw, where=f"{file}, entry {number}")
