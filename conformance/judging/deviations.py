"""Deviation entries: where JAX does not do what the document says, with evidence.

An entry is evidence about JAX, never a way to silence a failing check: it must match a cell, the
cell must deviate, and the observation must be the one that the entry describes.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from conformance.catalogue.causes import load_causes
from conformance.catalogue.spelling import did_you_mean
from conformance.judging.seen import (
    SOME,
    FaultPattern,
    PatternError,
    Processes,
    StepPattern,
    chosen,
    fault_pattern,
    step_pattern,
    steps_of,
)
from conformance.model.tables import check_keys, load_toml
from conformance.spec.clause import Clause
from conformance.spec.emissions import EmissionError, EmissionPattern, emission_pattern
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault
from conformance.spec.names import COLUMNS
from conformance.spec.observation import BETWEEN, Observation

# One file per section, beside the modules whose clauses it is about.
FOLDER = Path(__file__).parents[1] / "sections"
FILES = ("{section}/*.toml", "*.toml")

_WILDCARDS = frozenset("*?[")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*([\w-]+)[ \t]*\]\]", re.MULTILINE)


Patterns = tuple[StepPattern, ...]  # any of which may be seen
SEEN = ("saw", "steps", "fault", "warns")
ENTRIES, WARNING_ENTRIES = "deviation", "warning"  # the tables of a file


@dataclass(frozen=True, slots=True)
class Deviation:
    """One entry: which cells, what is seen in them, why, and when to look again.

    `clause`, `platform` and `topology` are shell patterns, `jax` a version range; `cells` are
    several pairs of range and topologies in place of one. What is seen is said by one of three:
    `saw`, of the one step that is compared; `steps`, of each step that fails, where several are
    compared: no other step may fail; `fault`, where the case does not come back. Each is a pattern
    of recorded fields (`judging.seen`), or several, any of which may be seen, so that nothing new
    can hide behind an old entry. Why is said by the `cause`, and by `note` what is special to these
    cells. `processes` are those that see it, of every step or, in a table, of each step that it
    names; the others' are all. `packages` are version ranges of packages that the clause requires:
    the entry holds where the target has each in its range. `review` is a date.

    An entry with `warns` is about one warning or log record: the cell's other findings stand for
    themselves. Unless it is `optional`, some step of the cell must emit it.
    """

    clause: tuple[str, ...]
    implementation: tuple[str, ...]
    review: datetime.date
    saw: Patterns = ()
    steps: Mapping[str, Patterns] = field(default_factory=dict)
    fault: FaultPattern | None = None
    warns: EmissionPattern | None = None
    optional: bool = False
    cause: str = ""
    why: str = ""
    link: str = ""
    kind: str = ""
    note: str = ""
    jax: str = ""
    platform: tuple[str, ...] = ("*",)
    topology: tuple[str, ...] = ("*",)
    cells: tuple[tuple[str, tuple[str, ...]], ...] = ()
    processes: Processes | Mapping[str, Processes] = "all"
    packages: Mapping[str, str] = field(default_factory=dict)
    where: str = field(default="a deviation entry", compare=False)  # its file, line and number

    @property
    def seen(self) -> str:
        """Return what was seen, in a line."""
        if self.fault is not None or self.warns is not None:
            return str(self.fault or self.warns)
        if self.saw:
            return _any_of(self.saw)
        return "; ".join(f"{step}: {_any_of(some)}" for step, some in self.steps.items())

    @property
    def versions(self) -> str:
        """The JAX versions, with topologies and packages if they matter, in a line."""
        ranges = self.ranges
        if not self.packages:
            return ranges
        beside = ", ".join(f"{name} {versions}" for name, versions in self.packages.items())
        return f"{ranges or 'any'}, with {beside}"

    @property
    def ranges(self) -> str:
        """The JAX versions, with topologies if they matter, in a line."""
        if not self.cells:
            return self.jax
        return "; ".join(
            f"{versions or 'any'} on {', '.join(topologies)}" for versions, topologies in self.cells
        )

    def names(self, clause: str) -> bool:
        """Return whether the entry names this clause."""
        return clause in self.clause or any(_matches(clause, one) for one in self.clause)

    def named_in(self, ids: Collection[str]) -> Iterable[str]:
        """Return those of `ids` that the entry names, each once."""
        found: dict[str, None] = {}
        for pattern in self.clause:
            if _WILDCARDS.isdisjoint(pattern):
                found |= {pattern: None} if pattern in ids else {}
            else:
                found |= dict.fromkeys(id for id in ids if fnmatchcase(id, pattern))
        return found

    def matches(
        self,
        clause: str,
        implementation: str,
        jax: str,
        platform: str,
        topology: str,
        packages: Mapping[str, str] | None = None,
    ) -> bool:
        """Return whether the entry applies to this cell; `packages` are the target's, None for any
        target.
        """
        return (
            implementation in self.implementation
            and self.names(clause)
            and _matches_any(platform, self.platform)
            and any(
                _within(versions, jax) and _matches_any(topology, topologies)
                for versions, topologies in self.cells or ((self.jax, self.topology),)
            )
            and (packages is None or self._has(packages))
        )

    def elsewhere(
        self,
        clause: str,
        implementation: str,
        jax: str,
        platform: str,
        topology: str,
        packages: Mapping[str, str] | None = None,
    ) -> str:
        """Return what keeps an entry that names the clause from this cell: `jax ==0.9.0`.

        Empty if nothing does, or if the entry names other clauses.
        """
        if not self.names(clause):
            return ""
        parts = []
        if implementation not in self.implementation:
            parts.append(", ".join(self.implementation))
        if not _matches_any(platform, self.platform):
            parts.append(f"platform {', '.join(self.platform)}")
        here = [
            (_within(versions, jax), _matches_any(topology, topologies))
            for versions, topologies in self.cells or ((self.jax, self.topology),)
        ]
        if not any(map(all, here)):
            if self.cells:
                parts.append(f"jax {self.ranges}")
            else:
                ((version, place),) = here
                parts += [] if version else [f"jax {self.jax}"]
                parts += [] if place else [f"topology {', '.join(self.topology)}"]
        if packages is not None and not self._has(packages):
            parts += [f"{name} {versions}" for name, versions in self.packages.items()]
        return ", ".join(parts)

    def _has(self, packages: Mapping[str, str]) -> bool:
        """Return whether the target's packages are in the entry's ranges."""
        return all(
            name in packages and _within(versions, packages[name])
            for name, versions in self.packages.items()
        )

    def explains(
        self,
        findings: Sequence[Finding],
        observations: Sequence[Observation],
        fault: Fault | None = None,
    ) -> bool:
        """Return whether the failed `findings` are what the entry describes.

        Without findings the case did not finish: then the `fault` is compared.
        """
        failed = [f for f in findings if not f.holds]
        if not failed:
            return self.fault is not None and fault is not None and self.fault.agrees(fault)
        if self.saw and not self.names_the_step(findings):
            return False
        steps = dict.fromkeys((f.step for f in failed), self.saw) if self.saw else self.steps
        if {f.step for f in failed} != set(steps):
            return False
        of_step = steps_of(observations)
        together: dict[tuple[int, str], list[Finding]] = {}
        for one in failed:
            together.setdefault((one.process, one.step), []).append(one)
        return self._where(findings) and all(
            any(pattern.agrees(of_step.get(place), some) for pattern in steps[place[1]])
            for place, some in together.items()
        )

    def names_the_step(self, findings: Sequence[Finding]) -> bool:
        """Return whether these findings leave no doubt which step `saw` is about.

        That is where one step is compared. A known warning outside the steps is none.
        """
        return len({f.step for f in findings if not (f.holds and f.step == BETWEEN)}) <= 1

    def _where(self, findings: Sequence[Finding]) -> bool:
        """Return whether each failing step fails in exactly the processes that the entry names."""
        every = {f.process for f in findings}
        failing: dict[str, set[int]] = {}
        for f in findings:
            if not f.holds:
                failing.setdefault(f.step, set()).add(f.process)
        return all(seen == self.processes_in(step, every) for step, seen in failing.items())

    def processes_in(self, step: str, every: set[int]) -> set[int]:
        """Return in which of `every` process a step is expected to fail."""
        named = self.processes
        if isinstance(named, Mapping):
            named = named.get(step, "all")
        return set(chosen(named, sorted(every)))


class ByClause:
    """Deviation entries, found by the clauses that they name."""

    def __init__(self, entries: Iterable[Deviation]) -> None:
        self._entries = tuple(entries)
        self._of_id: dict[str, list[int]] = {}  # positions of the entries that name a clause by id
        self._patterns: list[tuple[str, int]] = []
        for at, entry in enumerate(self._entries):
            for pattern in entry.clause:
                if _WILDCARDS.isdisjoint(pattern):
                    self._of_id.setdefault(pattern, []).append(at)
                else:
                    self._patterns.append((pattern, at))
        self._found: dict[str, tuple[Deviation, ...]] = {}

    def __getitem__(self, clause: str) -> tuple[Deviation, ...]:
        """Return the entries that name a clause, in their order."""
        if clause not in self._found:
            places = set(self._of_id.get(clause, ()))
            places.update(at for pattern, at in self._patterns if fnmatchcase(clause, pattern))
            self._found[clause] = tuple(self._entries[at] for at in sorted(places))
        return self._found[clause]


class DeviationError(ValueError):
    """An entry that is invalid or that matches nothing."""


def load_all(section: str = "*") -> tuple[Deviation, ...]:
    """Return the entries of every section; of one and those that name clauses of several."""
    patterns = (pattern.format(section=section) for pattern in FILES)
    files = sorted(file for pattern in patterns for file in FOLDER.glob(pattern))
    return tuple(entry for file in files for entry in load(file))


def load(path: Path) -> tuple[Deviation, ...]:
    """Return the entries of a TOML file; DeviationError names the entry and the error."""
    data = load_toml(path, DeviationError)
    tables = {name: data.pop(name, []) for name in (ENTRIES, WARNING_ENTRIES)}
    if data:
        raise DeviationError(f"{path.name}: unknown table {', '.join(data)}; use [[{ENTRIES}]]")
    lines = _header_lines(path)
    return tuple(
        _entry(_place(path.name, table, number, lines.get(table, ())), table, raw)
        for table, entries in tables.items()
        for number, raw in enumerate(entries, 1)
    )


def _header_lines(path: Path) -> dict[str, list[int]]:
    """Return, for each table of a file, the lines on which its entries begin."""
    text = path.read_text(encoding="utf-8")
    found: dict[str, list[int]] = {}
    for header in _HEADER.finditer(text):
        found.setdefault(header[1], []).append(text.count("\n", 0, header.start()) + 1)
    return found


def _place(file: str, table: str, number: int, lines: Sequence[int]) -> str:
    """Return where an entry is: `accesses.toml:247, entry 23`."""
    line = f":{lines[number - 1]}" if number <= len(lines) else ""
    return f"{file}{line}, {'entry' if table == ENTRIES else table} {number}"


def of_no_clause(entries: Iterable[Deviation], clauses: Iterable[str]) -> list[str]:
    """Describe the entries that name a clause, or a pattern of clauses, that does not exist."""
    known = dict.fromkeys(clauses)  # most patterns are an id
    return [
        f"{entry.where}: no clause is called {pattern}{did_you_mean(pattern, known)}"
        for entry in entries
        for pattern in entry.clause
        if pattern not in known and not any(_matches(id, pattern) for id in known)
    ]


def of_no_package(entries: Iterable[Deviation], clauses: Mapping[str, Clause]) -> list[str]:
    """Describe the entries that name a package which their clauses do not require."""
    return [
        f"{entry.where}: {id} does not require {name}: of which package is it?"
        for entry in entries
        if entry.packages
        for id in entry.named_in(clauses)
        for name in entry.packages
        if name not in clauses[id].requires
    ]


def naming_causes(entries: Iterable[Deviation], clauses: Iterable[Clause]) -> dict[str, list[str]]:
    """Return who names each known issue: clause ids, and deviation entries by their places.

    An entry about a warning changes no verdict, so its known issue may be a compared one.
    """
    found: dict[str, list[str]] = {}
    for one in clauses:
        if one.cause:
            found.setdefault(one.cause, []).append(one.id)
    for entry in entries:
        if entry.cause and not (entry.warns and load_causes()[entry.cause].compared):
            found.setdefault(entry.cause, []).append(entry.where)
    return found


def matching(
    entries: Iterable[Deviation],
    clause: str,
    implementation: str,
    jax: str,
    platform: str,
    topology: str,
    packages: Mapping[str, str] | None = None,
) -> tuple[Deviation, ...]:
    """Return the entries of one cell, those about warnings last; DeviationError if two claim it."""
    cell = (clause, implementation, jax, platform, topology, packages)
    matched = [entry for entry in entries if entry.matches(*cell)]
    found = [entry for entry in matched if entry.warns is None]
    if len(found) > 1:
        raise DeviationError(
            f"{len(found)} deviation entries describe {clause} under {implementation} on jax "
            f"{jax}, {topology} ({'; '.join(e.where for e in found)}): narrow them, so that one "
            "remains"
        )
    return (*found, *(entry for entry in matched if entry.warns is not None))


def of_other_cells(
    entries: Iterable[Deviation],
    clause: str,
    implementation: str,
    jax: str,
    platform: str,
    topology: str,
    packages: Mapping[str, str] | None = None,
) -> list[str]:
    """Describe the entries of a cell's clause and implementation that are not about this cell."""
    cell = (clause, implementation, jax, platform, topology, packages)
    return [
        f"{entry.where} is for {why} only"
        for entry in entries
        if entry.warns is None and implementation in entry.implementation
        if (why := entry.elsewhere(*cell))
    ]


def _matches(clause: str, pattern: str) -> bool:
    """Return whether a clause's id matches a shell pattern; most patterns are ids."""
    if _WILDCARDS.isdisjoint(pattern):
        return clause == pattern
    return fnmatchcase(clause, pattern)


def _matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name matches one of some shell patterns; most are `*`."""
    return "*" in patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


@functools.lru_cache(maxsize=4096)  # a run asks the same few questions for every cell
def _within(versions: str, jax: str) -> bool:
    return SpecifierSet(versions).contains(Version(jax), prereleases=True)


def _entry(place: str, table: str, raw: dict[str, Any]) -> Deviation:
    where = f"{place} ({raw.get('clause', 'no clause')})"
    _check_keys(raw, table, where)
    _check_texts(raw, where)
    for key in _LISTS & raw.keys():
        raw[key] = _tuple(raw[key])
    unknown = set(raw["implementation"]) - set(COLUMNS)
    if unknown:
        raise DeviationError(
            f"{where}: no implementation is called {', '.join(sorted(unknown))}; "
            f"there are {', '.join(COLUMNS)}"
        )
    if "processes" in raw:
        raw["processes"] = _processes_by_step(raw["processes"], raw.get("steps"), where)
    if "cells" in raw:
        raw["cells"] = _cells(raw, where)
    packages = _packages(raw.get("packages", {}), where)
    try:
        for versions in packages.values():
            SpecifierSet(versions)
        for versions, _ in raw.get("cells") or ((raw.get("jax", ""), ()),):
            SpecifierSet(versions)
        raw |= seen_patterns(raw)
    except (InvalidSpecifier, PatternError, EmissionError, re.error) as error:
        raise DeviationError(f"{where}: {error}") from error
    raw |= _texts_of_cause(raw, where)
    return Deviation(**raw, where=place)


_LISTS = {"clause", "implementation", "platform", "topology"}


def _check_keys(raw: Mapping[str, Any], table: str, where: str) -> None:
    """Raise DeviationError if an entry has other keys than those of its table."""
    known = {f.name for f in fields(Deviation)} - {"where", "why", "link", "kind"}
    required = {"clause", "implementation", "cause", "review"}
    check_keys(raw, known, required, where, DeviationError)
    if len(raw.keys() & SEEN) != 1:
        raise DeviationError(f"{where}: describe what is seen with one of {', '.join(SEEN)}")
    if ("warns" in raw) != (table == WARNING_ENTRIES):
        raise DeviationError(f"{where}: [[{WARNING_ENTRIES}]] has `warns`, [[{ENTRIES}]] does not")
    if type(raw.get("optional", False)) is not bool or (table == ENTRIES and "optional" in raw):
        raise DeviationError(f"{where}: only a [[{WARNING_ENTRIES}]] may have optional = true")


def _check_texts(raw: Mapping[str, Any], where: str) -> None:
    """Raise DeviationError if a value of an entry is no text, or its review no date."""
    if raw["cause"] == "":
        raise DeviationError(
            f"{where}: cause is empty: name one of `pmap-conformance causes list`, or add one"
        )
    for key in raw.keys() - {"review", "cells", "processes", "packages", "optional", *SEEN}:
        parts = raw[key] if key in _LISTS and isinstance(raw[key], list) else [raw[key]]
        if not parts or not all(isinstance(part, str) and part for part in parts):
            several = ", or several in a list" if key in _LISTS else ""
            raise DeviationError(f"{where}: {key} must be a text{several}")
    if type(raw["review"]) is not datetime.date:
        raise DeviationError(f"{where}: review must be a date, written 2027-01-31 without quotes")


def _texts_of_cause(raw: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return what the known issue says of an entry that names it."""
    cause = load_causes().get(raw["cause"])
    if cause is None:
        meant = did_you_mean(raw["cause"], load_causes())
        raise DeviationError(
            f"{where}: no cause is called {raw['cause']}{meant}: `pmap-conformance causes list` "
            f"lists them; a new one is sections/<section>/causes/{raw['cause']}.toml, and beside "
            "it the program that shows it, of the same name with .py"
        )
    why = f"{cause.sentence} {raw.get('note', '')}".strip()
    return {"why": why, "link": cause.links[0], "kind": cause.kind}


def seen_patterns(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry's patterns in the form that `Deviation` takes; PatternError if invalid."""
    if "warns" in entry:
        return {"warns": emission_pattern(entry["warns"])}
    if "fault" in entry:
        return {"fault": fault_pattern(entry["fault"])}
    if "saw" in entry:
        return {"saw": _alternatives(entry["saw"])}
    steps = entry["steps"]
    if not isinstance(steps, dict) or not steps:
        raise PatternError("steps is a table of steps, each with what is seen in it")
    return {"steps": {step: _alternatives(some) for step, some in steps.items()}}


def _alternatives(some: Any) -> Patterns:
    found = tuple(map(step_pattern, some if isinstance(some, list) else [some]))
    if not found:
        raise PatternError("what is seen is a table of fields, or several in a list")
    return found


def _any_of(some: Patterns) -> str:
    return " or ".join(map(str, some))


def _packages(some: Any, where: str) -> Mapping[str, str]:
    texts = [*some, *some.values()] if isinstance(some, dict) else [some]
    if not all(isinstance(one, str) and one for one in texts) or not isinstance(some, dict):
        raise DeviationError(f'{where}: packages are written packages.flax = ">=0.12"')
    return some


def _processes_by_step(some: Any, steps: Any, where: str) -> Processes | Mapping[str, Processes]:
    if not isinstance(some, dict):
        return _processes(some, where)
    if unknown := some.keys() - (steps.keys() if isinstance(steps, dict) else ()):
        raise DeviationError(
            f"{where}: processes names {', '.join(sorted(unknown))}, which steps does not have"
        )
    return {step: _processes(one, where) for step, one in some.items()}


def _processes(some: Any, where: str) -> Processes:
    if isinstance(some, str) and some in SOME:
        return some
    if not isinstance(some, list) or not some or {type(one) for one in some} != {int}:
        words = ", ".join(f'"{one}"' for one in SOME)
        raise DeviationError(f"{where}: processes are written [2, 3], or are one of {words}")
    return tuple(some)


def _cells(raw: Mapping[str, Any], where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if "jax" in raw or "topology" in raw:
        raise DeviationError(f"{where}: cells says which jax and topology; leave those two out")
    found = []
    for one in (raw["cells"] if isinstance(raw["cells"], list) else []) or [None]:
        if not isinstance(one, dict) or set(one) - {"jax", "topology"} or not one:
            raise DeviationError(f'{where}: cells are written {{ jax = "<0.9", topology = "2x2" }}')
        found.append((one.get("jax", ""), _tuple(one.get("topology", "*"))))
    return tuple(found)


def _tuple(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
