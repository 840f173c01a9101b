"""Entries for known differences between implementations that no clause judges.

An entry of `agreement.toml` describes a difference in one sentence. It may name a claim, if a
document announces it for all clauses, or a known issue; otherwise it is a known undocumented
difference, and appears in the findings.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from conformance.model.tables import check_keys, load_toml
from reports.analysis.comparing.fields import FIELDS, Difference
from reports.store.input_error import InputError
from reports.store.order import MAPS, NEW, SHARD_MAP, version_order

FILE = Path(__file__).with_name("agreement.toml")
_PATTERNS_KEPT = 4096  # the same few hundred are asked of every cell

_COMPARISON = re.compile(r"(<=|>=|==|!=|<|>)\s*([\w.]+)")
_LISTS = ("field", "new_in", "clause", "step", "topology")


class EntryError(InputError, ValueError):
    """An invalid entry; the message names it and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One known difference: its field, old and new value, where, and its description.

    `old` and `new` are as printed, with `*` for any text; `new_in` are the implementations that
    differ from legacy pmap, or shard_map if it differs from new pmap. `clause`, `step` and
    `topology` are shell patterns, `jax` a range that contains the later of the two. `same` says
    that the implementations behave equally and something else causes the difference.
    """

    field: tuple[str, ...]
    old: str
    new: str
    says: str
    review: datetime.date
    new_in: tuple[str, ...] = (NEW, SHARD_MAP)
    clause: tuple[str, ...] = ("*",)
    step: tuple[str, ...] = ("*",)
    topology: tuple[str, ...] = ("*",)
    jax: str = ""
    claim: str = ""
    cause: str = ""
    same: bool = False
    where: str = "an entry"  # its file and number

    def matches(
        self,
        difference: Difference,
        between: tuple[str, str],
        clause: str,
        topology: str,
        jax: str,
    ) -> bool:
        """Return whether the entry is about this difference."""
        return (
            difference.field in self.field
            and like(self.old, difference.old)
            and like(self.new, difference.new)
            and self.matches_step(difference.step)
            and self.matches_place(between[1], clause, topology, jax)
        )

    def matches_step(self, step: str) -> bool:
        """Return whether the entry is about differences in a step."""
        return any(fnmatchcase(step, pattern) for pattern in self.step)

    def matches_place(self, implementation: str, clause: str, topology: str, jax: str) -> bool:
        """Return whether the entry is about differences of a cell."""
        return (
            implementation in self.new_in
            and any(fnmatchcase(clause, pattern) for pattern in self.clause)
            and any(fnmatchcase(topology, pattern) for pattern in self.topology)
            and within(self.jax, jax)
        )


def load_entries(path: Path = FILE) -> tuple[Entry, ...]:
    """Return the entries of a TOML file; EntryError if one is invalid."""
    return tuple(_entry(raw, where) for where, raw in tables_of(path, "difference"))


def tables_of(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each `[[name]]` table of a TOML file with its position; EntryError if invalid."""
    data = load_toml(path, EntryError)
    entries = data.pop(name, [])
    if data or not isinstance(entries, list):
        raise EntryError(f"{path}: only [[{name}]] entries are allowed; correct or remove the rest")
    return ((f"{path.name}, entry {n}", raw) for n, raw in enumerate(entries, 1))


@lru_cache(_PATTERNS_KEPT)
def within(versions: str, jax: str) -> bool:
    """Return whether a version is in a range such as ">=0.9,<0.11"; EntryError if it is no
    range."""
    here = version_order(jax)[1:4]
    for part in filter(None, versions.split(",")):
        match = _COMPARISON.fullmatch(part.strip())
        if match is None:
            raise EntryError(f"{versions!r} is not a range of versions: write it '>=0.9,<0.11'")
        there = version_order(match[2])[1:4]
        holds = {
            "<": here < there,
            "<=": here <= there,
            ">": here > there,
            ">=": here >= there,
            "==": here == there,
            "!=": here != there,
        }
        if not holds[match[1]]:
            return False
    return True


def like(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern in which only `*` is special."""
    return _expression(pattern).fullmatch(text) is not None


@lru_cache(_PATTERNS_KEPT)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _entry(raw: Mapping[str, Any], where: str) -> Entry:
    if not isinstance(raw, dict):
        raise EntryError(f"{where}: entries are written [[difference]]")
    known = {one.name for one in fields(Entry)} - {"where"}
    required = {"field", "old", "new", "says", "review"}
    check_keys(raw, known, required, where, EntryError)
    made: dict[str, Any] = {key: _tuple(raw[key]) if key in _LISTS else raw[key] for key in raw}
    for key in made.keys() - {"review", "same"}:
        texts: Sequence[Any] = made[key] if key in _LISTS else [made[key]]
        if not texts or not all(isinstance(text, str) and text for text in texts):
            several = ", or several in a list" if key in _LISTS else ""
            raise EntryError(f"{where}: {key} must be a text{several}")
    if unknown := set(made["field"]) - set(FIELDS):
        none = ", ".join(sorted(unknown))
        raise EntryError(f"{where}: no field is called {none}; there are {', '.join(FIELDS)}")
    if unknown := set(made.get("new_in", ())) - set(MAPS):
        raise EntryError(f"{where}: no implementation is called {', '.join(sorted(unknown))}")
    if type(made["review"]) is not datetime.date:
        raise EntryError(f"{where}: review must be a date, written 2027-01-31 without quotes")
    if type(made.get("same", True)) is not bool:
        raise EntryError(f"{where}: write same = true, or leave it out")
    if sum(bool(made.get(key)) for key in ("claim", "cause", "same")) > 1:
        raise EntryError(f"{where}: give only one of claim, cause and same")
    try:
        within(made.get("jax", ""), "0")
    except EntryError as error:
        raise EntryError(f"{where}: {error}") from None
    return Entry(**made, where=where)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
