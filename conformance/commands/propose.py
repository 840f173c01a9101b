"""`results propose RESULTS…`: entries to add, correct, narrow and remove, from recorded cells.

Each cell is judged again with today's clause, as if there were no entries: what then deviates
without an entry needs one, and an entry whose cell conforms is too wide.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from conformance.catalogue.loading import Catalogue
from conformance.commands.entries import Entries
from conformance.commands.strength import cell_id, observations
from conformance.judging.deviations import Deviation, seen_patterns
from conformance.judging.judge import PROOF, Judgement, judge
from conformance.judging.rejudging import fault_of
from conformance.judging.seen import (
    AT_LEAST,
    AT_MOST,
    SOME,
    Processes,
    StepPattern,
    agrees,
    shown,
    steps_of,
)
from conformance.model.records import Cell, Target
from conformance.model.verdicts import Verdict
from conformance.mutation.perturbing.figures import COLLECTIVES, MULTIPLE
from conformance.spec import aspects
from conformance.spec.clause import Clause
from conformance.spec.codes import Code, figures_of
from conformance.spec.expectation import Finding, claimed
from conformance.spec.faults import Fault
from conformance.spec.names import LEGACY_PMAP
from conformance.spec.observation import Leaf, Observation, Step
from conformance.spec.topology import Topology
from conformance.store.recorded import UNJUDGED, cells, no_cell

LEAST_IN_COMMON = 12  # characters by which two texts are said to begin alike
MOST_OF_A_TEXT = 120  # characters of what was seen that a pattern holds

MOVED, PROGRAMS = "moved", "programs"  # figures of a step
EXACT = ("bytes", "host")  # parts of what moves that an entry names exactly

# Fields of leaves that an entry names in place of the printed values, which may be the right ones.
Field = tuple[str, ...]
OF_LEAVES: Mapping[str, tuple[Field, ...]] = {
    Code.DTYPE: (("dtype",), ("weak_type",)),
    Code.WEAK_TYPE: (("dtype",), ("weak_type",)),
    Code.MEMORY_KIND: (("sharding", "memory_kind"),),
}
COMMITTED = (("committed",),)
PLACED = (("sharding", "type"), ("sharding", "spec"), DEVICES := ("sharding", "devices"))

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_ESCAPED = r"\\\g<0>"
# What differs from run to run: a pattern ends before it.
_PASSING = re.compile(r"0x[0-9a-f]{4,}|\bport \d|\bpid \d|/tmp/|\d{5,}")


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded cell, judged without entries."""

    clause: str
    implementation: str
    jax: str
    topology: str
    judgement: Judgement
    observations: tuple[Observation, ...] = ()
    fault: Fault | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # that its clause requires

    @property
    def deviates(self) -> bool:
        """Return whether the cell needs an entry: anything but conforming."""
        return self.judgement.verdict != Verdict.CONFORMS

    @property
    def compared(self) -> list[Finding]:
        """Return the findings that an entry can describe, without those of the proof."""
        return [one for one in self.judgement.findings if one.step != PROOF]

    @property
    def unproven(self) -> bool:
        """Return whether it is not proved which implementation ran; no entry excuses that."""
        return any(one.step == PROOF and not one.holds for one in self.judgement.findings)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry to add, without its known issue; `explains` says whether it excuses all its
    cells, `like` which clause has an entry with the same evidence, and its known issue.
    """

    file: str
    clause: str
    implementations: tuple[str, ...]
    seen: Mapping[str, Any]  # `saw`, `steps` or `fault`, as TOML has it
    cells: tuple[tuple[str, tuple[str, ...]], ...]
    processes: Processes | Mapping[str, Processes]
    explains: bool
    packages: Mapping[str, str] = field(default_factory=dict)
    like: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Excess:
    """An entry that is too wide: which of its `judged` cells conform, and whether all do.

    `corrections` are the fields, with their old and new values, that make it excuse all of them.
    """

    entry: Deviation
    conforms: tuple[str, ...]
    excuses: tuple[str, ...]
    other: tuple[str, ...]
    judged: int
    corrections: tuple[tuple[str, Any, Any], ...] = ()


@dataclass(slots=True)
class Proposal:
    """What to change in the entries; `unproven` are deviating cells that no entry may excuse.

    `reference` are clauses whose expectation is wrong: the reference itself deviates from it.
    """

    add: list[Entry] = field(default_factory=list)
    reference: list[Entry] = field(default_factory=list)
    correct: list[Excess] = field(default_factory=list)
    narrow: list[Excess] = field(default_factory=list)
    drop: list[Excess] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    judged: int = 0


def propose(
    catalogue: Catalogue,
    deviations: Sequence[Deviation],
    files: Sequence[Path],
    undocumented: Collection[str] = (),
) -> Proposal:
    """Return which entries these results contradict; ResultsError if they have no cell.

    Of the claims `undocumented` legacy pmap is the reference.
    """
    judged = _Judged(catalogue, deviations, files)
    if not judged.cells:
        raise no_cell(files)
    found = Proposal(judged=judged.cells, unproven=judged.unproven)
    without = judged.without
    for number, some in sorted(judged.of_entry.items()):
        excess = _excess(deviations[number], some)
        if excess.corrections:
            found.correct.append(excess)
            corrected = set(map(id, some))
            without = [one for one in without if id(one) not in corrected]
        elif excess.conforms or excess.other:
            (found.narrow if excess.excuses else found.drop).append(excess)
    needed: list[Entry] = []
    for group in _alike(without):
        made = _entry(catalogue, group, judged.ran, judged.packages, deviations)
        silent = catalogue.clauses[made.clause].claim in undocumented
        (found.reference if silent and _always(group, judged.ran) else needed).append(made)
    found.add = _merged(needed)
    return found


class _Judged:
    """The recorded cells, judged again: by entry, and those that no entry describes.

    `ran` are the versions of JAX by clause, implementation and topology; `packages` those of each
    package.
    """

    def __init__(
        self, catalogue: Catalogue, deviations: Sequence[Deviation], files: Sequence[Path]
    ) -> None:
        self.cells = 0
        self.of_entry: dict[int, list[Judged]] = {}
        self.without: list[Judged] = []
        self.unproven: list[str] = []
        self.ran: dict[tuple[str, str, str], set[str]] = {}
        self.packages: dict[str, set[str]] = {}
        about = Entries(deviations)
        at = {id(entry): number for number, entry in enumerate(deviations)}
        for cell, target in cells(files):
            clause = catalogue.clauses.get(cell.clause)
            if clause is None or clause.timing is not None or cell.verdict in UNJUDGED:
                continue
            if cell.implementation not in clause.expect:
                continue
            self.cells += 1
            entries = about.about(cell, target)
            one = _judged(catalogue, cell, target, [e for e in entries if e.warns is not None])
            entries = tuple(entry for entry in entries if entry.warns is None)
            for entry in entries:
                self.of_entry.setdefault(at[id(entry)], []).append(one)
            self._add(one, cell, explained=any(_explains(entry, one) for entry in entries))

    def _add(self, judged: Judged, cell: Cell, *, explained: bool) -> None:
        self.ran.setdefault((judged.clause, judged.implementation, judged.topology), set()).add(
            judged.jax
        )
        for name, version in judged.packages.items():
            self.packages.setdefault(name, set()).add(version)
        if judged.deviates and not explained:
            if judged.unproven:
                self.unproven.append(cell_id(cell))
            else:
                self.without.append(judged)


def _judged(
    catalogue: Catalogue, cell: Cell, target: Target, warned: Sequence[Deviation]
) -> Judged:
    topology = Topology.parse(cell.topology)
    clause = catalogue.clauses[cell.clause]
    jax = target.jax or ""
    place = (clause, cell.implementation, topology, jax)
    there = target.packages
    seen, fault = observations(cell), fault_of(cell)
    return Judged(
        cell.clause,
        cell.implementation,
        jax,
        cell.topology,
        judge(*place, seen, fault, warned),
        seen,
        fault,
        {name: there[name] for name in clause.requires if name in there},
    )


def _explains(entry: Deviation, judged: Judged) -> bool:
    return not judged.unproven and entry.explains(
        judged.compared, judged.observations, judged.fault
    )


def _excess(entry: Deviation, some: Sequence[Judged]) -> Excess:
    conforms: list[Judged] = []
    excuses: list[Judged] = []
    other: list[Judged] = []
    for one in some:
        if not one.deviates:
            conforms.append(one)
        else:
            (excuses if _explains(entry, one) else other).append(one)
    corrections = () if conforms or excuses else tuple(_corrections(entry, other))
    return Excess(
        entry, _places(conforms), _places(excuses), _places(other), len(some), corrections
    )


def _places(some: Iterable[Judged]) -> tuple[str, ...]:
    """Describe cells, those of several implementations together."""
    there: dict[str, dict[str, None]] = {}
    for one in some:
        at = f"jax {one.jax} on {one.topology}"
        there.setdefault(at, {})[one.implementation] = None
    return tuple(f"{', '.join(names)}, {at}" for at, names in there.items())


def _corrections(entry: Deviation, some: Sequence[Judged]) -> list[tuple[str, Any, Any]]:
    """Return what to change in an entry so that it excuses these cells; nothing if more than
    the values of its fields is wrong.
    """
    if len(entry.saw) != 1 or not some:
        return []
    failed = [f for f in some[0].compared if not f.holds]
    if not failed:
        return []
    step = steps_of(some[0].observations).get((failed[0].process, failed[0].step))
    old = entry.saw[0].fields
    new = _corrected(old, shown(step, [f for f in failed if f.process == failed[0].process]))
    made = replace(entry, saw=(StepPattern(new),))
    return list(_changed(old, new)) if all(_explains(made, one) for one in some) else []


def _corrected(wanted: Any, seen: Any) -> Any:
    """Return a pattern whose parts that do not match are replaced by what was seen."""
    if agrees(wanted, seen):
        return wanted
    if isinstance(wanted, Mapping) and isinstance(seen, Mapping):
        return {
            key: _corrected(one, seen[key]) if key in seen else one for key, one in wanted.items()
        }
    if isinstance(wanted, Mapping) and isinstance(seen, int | float):
        return _bounds([seen])
    if isinstance(seen, str):
        return pattern([seen])
    return _any_of([seen]) if isinstance(wanted, str) else seen


def _changed(old: Any, new: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields whose pattern is another one, with both."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() <= new.keys():
        for key in old:
            yield from _changed(old[key], new[key], key)
    else:
        yield name, old, new


def _always(group: Sequence[Judged], ran: Mapping[Any, set[str]]) -> bool:
    """Return whether every release of legacy pmap that ran comes back, and deviates: then it is
    no regression of one.
    """
    first = group[0]
    if first.implementation != LEGACY_PMAP or any(one.fault is not None for one in group):
        return False
    seen: dict[str, set[str]] = {}
    for one in group:
        seen.setdefault(one.topology, set()).add(one.jax)
    return all(seen[on] == ran[first.clause, LEGACY_PMAP, on] for on in seen)


def _merged(entries: Iterable[Entry]) -> list[Entry]:
    """Join the entries that differ in their implementation only."""
    found: dict[str, Entry] = {}
    for one in entries:
        key = repr(replace(one, implementations=(), like=None))
        before = found.get(key)
        both = (*before.implementations, *one.implementations) if before else one.implementations
        found[key] = replace(before or one, implementations=both)
    return list(found.values())


def _alike(some: Iterable[Judged]) -> list[list[Judged]]:
    """Group cells that one entry can excuse: same clause, steps and kind of failure."""
    groups: dict[Any, list[Judged]] = {}
    for one in some:
        failing = _failing(one)
        processes = tuple(failing.items()) if isinstance(failing, Mapping) else failing
        key = (one.clause, one.implementation, _kind(one), processes)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _kind(judged: Judged) -> tuple[Any, ...]:
    """Return the kind of failure by step: the exception's type, else what was compared, and how."""
    failed = [f for f in judged.compared if not f.holds]
    if not failed:
        return (judged.judgement.verdict,)
    steps = steps_of(judged.observations)
    return tuple(
        sorted({(f.step, *_kind_of_step(steps.get((f.process, f.step)), f)) for f in failed})
    )


def _kind_of_step(step: Step | None, failed: Finding) -> tuple[str, ...]:
    if step is None:
        return ("absent",)
    if step.raised is not None:
        return (step.raised.type, step.raised.phase)
    moved = step.extra.get(MOVED)
    exact = [moved.get(key) for key in EXACT] if isinstance(moved, Mapping) else []
    of_moved = json.dumps(exact) if MOVED in figures_of([failed.code]) else ""
    return ("", failed.code, failed.mistake, failed.values, of_moved)


def _failing(judged: Judged) -> Processes | Mapping[str, Processes]:
    """Return in which processes each failing step fails; one value if all steps agree."""
    every = sorted({f.process for f in judged.compared})
    by_step: dict[str, set[int]] = {}
    for f in judged.compared:
        if not f.holds:
            by_step.setdefault(f.step, set()).add(f.process)
    processes = {step: _processes(failing, every) for step, failing in by_step.items()}
    if len(set(processes.values())) <= 1:
        return next(iter(processes.values()), "all")
    return {step: some for step, some in processes.items() if some != "all"}


def _processes(failing: Iterable[int], every: list[int]) -> Processes:
    """Return a word for a set of processes if there is one, else their numbers."""
    words = [word for word, chosen in SOME.items() if chosen(every) == sorted(failing)]
    return words[0] if words else tuple(sorted(failing))


def _entry(
    catalogue: Catalogue,
    group: Sequence[Judged],
    ran: Mapping[Any, set[str]],
    had: Mapping[str, set[str]],
    deviations: Sequence[Deviation],
) -> Entry:
    first = group[0]
    clause = catalogue.clauses[first.clause]
    seen = _seen(group, clause)
    places = _cells(group, clause.topologies, ran)
    made = Deviation(
        clause=(first.clause,),
        implementation=(first.implementation,),
        review=datetime.date.max,
        processes=_failing(first),
        **seen_patterns(seen),
    )
    return Entry(
        file=clause.where[0].removesuffix(".py") + ".toml",
        clause=first.clause,
        implementations=(first.implementation,),
        seen=seen,
        cells=places,
        processes=made.processes,
        explains=all(_explains(made, one) for one in group),
        packages=_packages(group, had),
        like=_like(group, deviations),
    )


def _like(group: Sequence[Judged], deviations: Sequence[Deviation]) -> tuple[str, str] | None:
    """Return the clause nearest by name with an entry in its section that would excuse these
    cells, and its known issue.
    """
    id = group[0].clause
    found = [
        (len(_beginning(clause, id)), clause, entry.cause)
        for entry in deviations
        if entry.cause and entry.warns is None
        for clause in entry.clause
        if clause.partition(".")[0] == id.partition(".")[0]
        and all(_explains(entry, one) for one in group)
    ]
    return max(found)[1:] if found else None


def _packages(group: Sequence[Judged], had: Mapping[str, set[str]]) -> dict[str, str]:
    """Return, for each package that the clause requires, the range of versions that showed it."""
    seen: dict[str, set[str]] = {}
    for one in group:
        for name, version in one.packages.items():
            seen.setdefault(name, set()).add(version)
    return {name: _without_others(some, had[name]) for name, some in seen.items()}


def _without_others(some: set[str], among: set[str]) -> str:
    """Return one range of versions, excluding those in between that ran and did not show it."""
    first, *_, last = sorted(some, key=Version) * 2
    if first == last:
        return f"=={first}"
    inside = (one for one in among - some if Version(first) < Version(one) < Version(last))
    return ",".join(
        [f">={first}", f"<={last}", *(f"!={one}" for one in sorted(inside, key=Version))]
    )


def _seen(group: Sequence[Judged], clause: Clause) -> dict[str, Any]:
    """Return the fields that were observed, by step if several steps are compared."""
    if not any(one.compared for one in group):
        return {"fault": _fault(group)}
    by_step: dict[str, list[tuple[Step | None, Finding]]] = {}
    for one in group:
        steps = steps_of(one.observations)
        for f in one.compared:
            if not f.holds:
                by_step.setdefault(f.step, []).append((steps.get((f.process, f.step)), f))
    expectation, jax = clause.expect[group[0].implementation], group[0].jax
    tables = {step: _table(some, claimed(expectation, step, jax)) for step, some in by_step.items()}
    alone = all(len({f.step for f in one.compared}) == 1 for one in group)
    return {"saw": next(iter(tables.values()))} if alone else {"steps": tables}


def _table(some: Sequence[tuple[Step | None, Finding]], claims: Collection[str]) -> dict[str, Any]:
    """Return the fields that all of these have in common, for one kind of failure (`_kind`).

    `claims` are the aspects of the step that its clause judges.
    """
    step, failed = some[0]
    codes = sorted({f.code for _, f in some})
    code = codes[0] if len(codes) == 1 else codes
    if step is None:
        return {"absent": True, "code": code}
    raised = [one.raised for one, _ in some if one is not None and one.raised is not None]
    if raised:
        error: dict[str, Any] = {
            "type": raised[0].type,
            "phase": raised[0].phase,
            "message": pattern(" ".join(one.message.split()) for one in raised),
        }
        return error if codes == [Code.ERROR] else error | {"code": code}
    table: dict[str, Any] = {"code": code}
    for key in ("mistake", "values"):
        if value := getattr(failed, key):
            table[key] = _SPECIAL.sub(_ESCAPED, value)
    if "mistake" in table:
        return table
    seen = [one for one, _ in some if one is not None]
    if noted := _figures({*figures_of(codes), *(f.figure for _, f in some if f.figure)}, seen):
        return table | {"noted": noted}  # the values may be the right ones
    if len(codes) == 1 and (leaves := _leaves(_fields(codes[0], claims, seen), seen)):
        return table | {"leaves": leaves}
    return table | {"returned": pattern(", ".join(map(str, one.leaves)) for one in seen)}


def _fields(code: str, claims: Collection[str], seen: Sequence[Step]) -> tuple[Field, ...]:
    """Return the fields of leaves that differ where these steps fail by this code.

    Being committed is expected of each leaf whose clause claims nothing else of its sharding.
    """
    if code != Code.SHARDING:
        return OF_LEAVES.get(code, ())
    leaves = [leaf for step in seen for leaf in step.leaves]
    placed = bool({aspects.SHARDING_TYPE, aspects.SPEC, aspects.DEVICES} & set(claims))
    committed = aspects.COMMITTED in claims or (
        not placed and any(leaf.committed is False for leaf in leaves)
    )
    return (COMMITTED if committed else ()) + (PLACED if placed or not committed else ())


def _leaves(fields: Sequence[Field], seen: Sequence[Step]) -> Any:
    """Return these fields of each returned leaf, once if all are alike; nothing if there are none,
    or if steps differ by more than the devices.
    """
    each = [[_parts(fields, leaf) for leaf in one.leaves] for one in seen]
    if not fields or not each[0] or len({len(leaves) for leaves in each}) > 1:
        return []
    found: list[dict[str, Any]] = []
    for same in zip(*each, strict=True):
        table: dict[str, Any] = {}
        for path in same[0]:
            values = [one.get(path) for one in same]
            if any(one != values[0] for one in values) and path != DEVICES:
                return []
            *outer, key = path
            inside = table.setdefault(outer[0], {}) if outer else table
            inside[key] = _leaf_pattern(values)
        found.append(table)
    alike = len(found) > 1 and all(one == found[0] for one in found)
    return found[0] if alike else found


def _parts(fields: Sequence[Field], leaf: Leaf) -> dict[Field, Any]:
    """Return those fields of a leaf that it has, by their paths."""
    found: dict[Field, Any] = {}
    for path in fields:
        *outer, key = path
        inside = getattr(leaf, outer[0]) if outer else {key: getattr(leaf, key)}
        if inside and inside.get(key) is not None:
            found[path] = inside[key]
    return found


def _leaf_pattern(values: Sequence[Any]) -> Any:
    """Return the pattern of a field of leaves: the value if there is one, else any of them."""
    first = values[0]
    if any(one != first for one in values):
        return _any_of(values)
    return f"^{_SPECIAL.sub(_ESCAPED, first)}$" if isinstance(first, str) else first


def _figures(names: Collection[str], seen: Sequence[Step]) -> dict[str, Any]:
    """Return the figures of these names that all of these steps noted."""
    noted = {name: [one.extra.get(name) for one in seen] for name in sorted(names)}
    if None not in noted.get(MOVED, [None]):
        noted.pop(PROGRAMS, None)  # of which `moved` is the sum
    return {name: _figure(some) for name, some in noted.items() if None not in some}


def _figure(some: Sequence[Any]) -> Any:
    """Return the pattern of a figure: of what moves, which collectives; of memory, the multiple."""
    tables = [one for one in some if isinstance(one, Mapping)]
    if len(tables) == len(some):
        if all(COLLECTIVES in one for one in tables):
            pinned = {COLLECTIVES: _any_of([one[COLLECTIVES] for one in tables])}
            return _exact(tables, "bytes") | pinned | _exact(tables, "host")
        multiples = [one[MULTIPLE] for one in tables if isinstance(one.get(MULTIPLE), int | float)]
        if len(multiples) == len(some):
            return {MULTIPLE: _bounds(multiples)}
    return _any_of(some)


def _exact(tables: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return a part that all of these tables have and agree on, with its value."""
    first, *others = (one.get(key) for one in tables)
    return {} if first is None or any(one != first for one in others) else {key: first}


def _bounds(some: Sequence[float]) -> dict[str, float]:
    """Return the pattern of numbers between the least and the most of these, to two digits."""
    least, most = math.floor(min(some) * 100), math.ceil(max(some) * 100)
    return {AT_LEAST: least / 100, AT_MOST: most / 100}


def _any_of(some: Sequence[Any]) -> str:
    """Return a regular expression that matches the JSON of these values and of no other."""
    texts = dict.fromkeys(json.dumps(one, ensure_ascii=False, sort_keys=True) for one in some)
    patterns = [_SPECIAL.sub(_ESCAPED, one) for one in texts]
    return f"^{patterns[0]}$" if len(patterns) == 1 else f"^({'|'.join(patterns)})$"


def _fault(group: Sequence[Judged]) -> dict[str, Any]:
    """Return how the cases of a group ended, as far as all agree."""
    faults = [one.fault for one in group if one.fault is not None]
    table: dict[str, Any] = {"kind": faults[0].kind}
    for key, name in (("signal", "signal"), ("exit", "exit"), ("step", "in_step")):
        values = {getattr(one.processes[0], name) for one in faults if one.processes}
        if len(values) == 1 and (value := values.pop()) not in (None, ""):
            table[key] = value
    return table


def pattern(texts: Iterable[str]) -> str:
    """Return a regular expression that matches the beginning of each text."""
    beginnings: list[str] = []
    for text in dict.fromkeys(texts):
        text = _steady(text)
        for at, known in enumerate(beginnings):
            common = _beginning(known, text)
            if common and (common in (known, text) or len(common) >= LEAST_IN_COMMON):
                beginnings[at] = common
                break
        else:
            beginnings.append(text)
    patterns = list(dict.fromkeys(_SPECIAL.sub(_ESCAPED, one) or "$" for one in beginnings))
    return f"^{patterns[0]}" if len(patterns) == 1 else f"^({'|'.join(patterns)})"


def _beginning(one: str, other: str) -> str:
    """Return the common beginning of two texts."""
    least = min(len(one), len(other))
    return one[: next((at for at in range(least) if one[at] != other[at]), least)]


def _steady(text: str) -> str:
    """Return the beginning of a text that will be the same in the next run."""
    text = text.split("\n", 1)[0]
    passing = _PASSING.search(text)
    return text[: min(passing.start() if passing else len(text), MOST_OF_A_TEXT)]


def _cells(
    group: Sequence[Judged], declared: Sequence[str], ran: Mapping[Any, set[str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return ranges of the versions that showed it, each with its topologies; "*" for all.

    A version in between that ran and showed something else ends a range.
    """
    seen: dict[str, set[str]] = {}
    for one in group:
        seen.setdefault(one.topology, set()).add(one.jax)
    first = group[0]
    by_range: dict[str, list[str]] = {}
    for topology, versions in seen.items():
        every = ran[first.clause, first.implementation, topology]
        for bounds in _ranges(versions, every):
            by_range.setdefault(bounds, []).append(topology)
    return tuple(
        (bounds, ("*",) if set(some) >= set(declared) else tuple(sorted(some)))
        for bounds, some in by_range.items()
    )


def _ranges(some: set[str], among: set[str]) -> list[str]:
    runs: list[list[str]] = []
    before = ""
    for version in sorted(among, key=Version):
        if version in some and runs and runs[-1][-1] == before:
            runs[-1].append(version)
        elif version in some:
            runs.append([version])
        before = version
    return [f"=={run[0]}" if len(run) == 1 else f">={run[0]},<={run[-1]}" for run in runs]
