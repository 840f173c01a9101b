"""Compare two runs cell by cell.

A verdict that became worse is a regression, one that became better a repair. A cell that says
nothing about JAX (not run, not applicable, implementation removed) is neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from conformance.model.records import Target, TargetKey
from conformance.model.verdicts import Verdict
from reports.store.input_error import InputError
from reports.store.outcomes import CellKey, Outcome
from reports.store.results import Results

# How bad a cell's verdict is for whoever uses JAX; what is not here says nothing of it.
_RANK = {
    Verdict.CONFORMS: 0,
    Verdict.KNOWN_DEVIATION: 1,
    Verdict.FLAKY: 2,
    Verdict.DEVIATES: 3,
    Verdict.HUNG: 4,
    Verdict.CRASHED: 4,
}

# What differs between two equal messages: addresses, numbers, and the values of arrays.
_ARRAY = re.compile(r"\[\[?[-\d][^\]]*\](?:[,\s]*(?:\.\.\.,?\s*)?\[[^\]]*\]+)*")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:e[-+]?\d+)?")


class CompareError(InputError):
    """Two runs cannot be compared; the message says why, and what to ask instead."""


class Kind(StrEnum):
    """How a cell changed, the most severe first."""

    REGRESSION = "regression"
    REPAIR = "repair"
    OTHER = "other change"


@dataclass(frozen=True, slots=True)
class Change:
    """A cell that differs between two runs; `key` is its key in the new run."""

    kind: Kind
    key: CellKey
    old: Outcome
    new: Outcome

    @property
    def verdicts(self) -> str:
        """Both verdicts, such as `conforms → crashed`."""
        return f"{self.old.verdict.value} → {self.new.verdict.value}"


@dataclass(frozen=True, slots=True)
class Group:
    """The changes of one kind with one explanation: a known issue, or a claim with the reason."""

    kind: Kind
    cause: str
    claim: str
    title: str
    changes: tuple[Change, ...]

    @property
    def clauses(self) -> tuple[str, ...]:
        """The ids of the clauses that changed, each once."""
        return tuple(dict.fromkeys(one.key.clause for one in self.changes))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that changed; `pairs` are the targets that were compared, by each run's
    own name.
    """

    pairs: tuple[tuple[str, str], ...]
    compared: int
    groups: tuple[Group, ...]
    new: int
    vanished: int
    notes: tuple[str, ...]

    def groups_of(self, kind: Kind) -> tuple[Group, ...]:
        """Return the groups of changes of a kind."""
        return tuple(group for group in self.groups if group.kind is kind)

    def cells(self, kind: Kind) -> int:
        """Return how many cells changed in this way."""
        return sum(len(group.changes) for group in self.groups_of(kind))


def compare(
    old: Results,
    new: Results,
    from_target: str | None = None,
    to_target: str | None = None,
    implementation: str | None = None,
) -> Comparison:
    """Return what changed from `old` to `new`; CompareError if they have nothing in common.

    `from_target` and `to_target` select a JAX of each, `implementation` one implementation.
    """
    pairs = _pairs(old, new, from_target, to_target)
    before = _cells(old, {a.key: (b.key if b else a.key) for a, b in pairs if a}, implementation)
    after = _cells(new, {b.key: b.key for _, b in pairs if b}, implementation)
    both = [key for key in after if key in before]
    if not both:
        raise CompareError(
            "no cell was run in both: give two runs of the same clauses on the same JAX, or name "
            "a JAX of each with --from and --to"
        )
    changes = [
        Change(kind, key, before[key], after[key])
        for key in both
        if (kind := _kind(before[key], after[key])) is not None
    ]
    return Comparison(
        pairs=tuple((old.labels[a.key], new.labels[b.key]) for a, b in pairs if a and b),
        compared=len(both),
        groups=tuple(_grouped(changes, old, new)),
        new=len(after.keys() - before.keys()),
        vanished=len(before.keys() - after.keys()),
        notes=(*_lonely(old, new, pairs), *_redeclared(old, new, both)),
    )


@lru_cache(maxsize=8192)  # most cells have one of few reasons
def masked(text: str) -> str:
    """Return a message without what differs each time: values, numbers, addresses."""
    return _NUMBER.sub("#", _ARRAY.sub("[…]", " ".join(text.split())))


def chosen(results: Results, version: str, option: str) -> Target:
    """Return the target of a JAX version, or of the name by which it was requested.

    CompareError, which names `option`, unless there is exactly one.
    """
    there = [t for t in results.targets if not t.unavailable]
    exact = [t for t in there if version in (t.jax, t.target, results.labels[t.key])]
    if len(exact) == 1:
        return exact[0]
    have = ", ".join(results.names[t.key] for t in there) or "none"
    many = f"{len(exact)} targets are jax {version}" if exact else f"no target is jax {version}"
    raise CompareError(f"{option} {version}: {many}; the files have {have}")


def _pairs(
    old: Results, new: Results, from_target: str | None, to_target: str | None
) -> list[tuple[Target | None, Target | None]]:
    """Return the targets to compare, and those that only one side has."""
    if from_target is not None and to_target is not None:
        return [(chosen(old, from_target, "--from"), chosen(new, to_target, "--to"))]
    one_side = [t for t in old.targets if not t.unavailable]
    other = [t for t in new.targets if not t.unavailable]
    if from_target is not None:
        one_side = [chosen(old, from_target, "--from")]
    if to_target is not None:
        other = [chosen(new, to_target, "--to")]
    if len(one_side) == 1 and len(other) == 1:
        return [(one_side[0], other[0])]
    pairs: list[tuple[Target | None, Target | None]] = []
    left = list(other)
    for one in one_side:
        match = next((t for t in left if t.key == one.key), None) or _only(
            [t for t in left if (t.jax, t.platform) == (one.jax, one.platform)]
            or [t for t in left if _nights(one, t) and t.platform == one.platform]
        )
        pairs.append((one, match))
        if match is not None:
            left.remove(match)
    if not any(a and b for a, b in pairs):
        had = " and ".join(
            ", ".join(r.names[t.key] for t in r.targets) or "none" for r in (old, new)
        )
        raise CompareError(f"no JAX is in both ({had}): name one of each with --from and --to")
    return [*pairs, *((None, one) for one in left)]


def _nights(one: Target, other: Target) -> bool:
    """Return whether both are nightly versions of JAX, whose versions differ by date."""
    return all(".dev" in (target.jax or "") for target in (one, other))


def _only(some: Sequence[Target]) -> Target | None:
    return some[0] if len(some) == 1 else None


def _cells(
    results: Results, targets: Mapping[TargetKey, TargetKey], implementation: str | None
) -> dict[CellKey, Outcome]:
    """Return the recorded cells of `targets`, under the targets' names in the new run.

    Cells that were not run are left out.
    """
    return {
        key._replace(target=targets[key.target]): outcome
        for key, outcome in results.outcomes.items()
        if key.target in targets and outcome.verdict is not Verdict.NOT_RUN
        if implementation in (None, key.implementation)
    }


def _kind(old: Outcome, new: Outcome) -> Kind | None:
    before, after = _RANK.get(old.verdict), _RANK.get(new.verdict)
    if before is None or after is None:
        return None if old.verdict is new.verdict else Kind.OTHER
    if before != after:
        return Kind.REGRESSION if after > before else Kind.REPAIR
    # What deviates in another way, or for another cause, is no better and no worse.
    same = old.verdict is Verdict.CONFORMS or _same_cause(old, new)
    return None if same and old.verdict is new.verdict else Kind.OTHER


def _same_cause(old: Outcome, new: Outcome) -> bool:
    before, after = cause_of(old), cause_of(new)
    # A run from before its entries named causes is known by what was seen.
    return before == after if before and after else masked(old.reason) == masked(new.reason)


def cause_of(outcome: Outcome) -> str:
    """Return the slug of the known issue that excuses a cell; empty if none does."""
    for run in reversed(outcome.runs):
        if run.cell.deviation is not None:
            return run.cell.deviation.cause
    return ""


def _grouped(changes: Iterable[Change], old: Results, new: Results) -> list[Group]:
    groups: dict[tuple[Kind, str, str, str], list[Change]] = {}
    for one in changes:
        outcome = one.old if one.kind is Kind.REPAIR else one.new
        slug = cause_of(outcome) or (cause_of(one.old) if one.kind is Kind.OTHER else "")
        claim = "" if slug else new.clauses[one.key.clause].claim
        # That nothing is left to be compared has one reason, whatever was claimed.
        silent = outcome.verdict not in _RANK
        about = (
            ("", "", outcome.reason)
            if silent
            else (slug, claim, "" if slug else masked(outcome.reason))
        )
        groups.setdefault((one.kind, *about), []).append(one)
    causes = {**old.causes, **new.causes}
    order = list(Kind)
    return sorted(
        (
            Group(kind, slug, claim, causes[slug].title if slug in causes else why, tuple(some))
            for (kind, slug, claim, why), some in groups.items()
        ),
        key=lambda g: (order.index(g.kind), -len(g.changes), g.cause, g.claim, g.title),
    )


def _lonely(
    old: Results, new: Results, pairs: Iterable[tuple[Target | None, Target | None]]
) -> list[str]:
    lines = []
    for a, b in pairs:
        if a and not b:
            lines.append(f"{old.labels[a.key]} is in OLD alone")
        if b and not a:
            lines.append(f"{new.labels[b.key]} is in NEW alone")
    return lines


def _redeclared(old: Results, new: Results, both: Iterable[CellKey]) -> list[str]:
    ids = dict.fromkeys(key.clause for key in both)
    changed = [id for id in ids if old.clauses[id].expected != new.clauses[id].expected]
    if not changed:
        return []
    some = ", ".join(changed[:3]) + (" and others" if len(changed) > 3 else "")
    clauses = "1 clause expects" if len(changed) == 1 else f"{len(changed)} clauses expect"
    return [f"{clauses} something else in NEW than in OLD: {some}"]
