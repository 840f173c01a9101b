"""The records of a results file, and the strict reading of one JSON object into one of them.

The fields of these classes are the keys of the format: `decode` takes them from the annotations,
so that a key cannot be read without being checked. What a worker observed stays plain JSON, as
observations grow with JAX and an older report must still show them.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from reports.reading.lazily import Lazily
from reports.reading.verdicts import Verdict

SCHEMA_VERSION = 1

T = TypeVar("T")


class RecordError(ValueError):
    """A JSON object is not the record that its kind says; the message names the key."""


class TargetKey(NamedTuple):
    """What tells two targets of merged files apart: "current" may be another JAX in each file."""

    target: str
    jax: str | None
    platform: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """One JAX build that a run used, or could not get (`unavailable` says why)."""

    schema: int
    target: str
    jax: str | None
    jaxlib: str | None
    numpy: str | None
    python: str | None
    platform: str | None
    machine: str | None
    run: str
    started: str
    unavailable: str | None
    compiling: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> TargetKey:
        return TargetKey(self.target, self.jax, self.platform)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a source document.

    `outline` is the document whatever its revision, `order` the place of the heading in it,
    `revisions` those that make the statement; `current` says whether the newest reviewed one does.
    """

    slug: str
    ref: str
    document: str
    document_title: str
    heading: str
    heading_hash: str
    statement: str
    claim_kind: str
    outline: str = ""
    order: int = 0
    revisions: tuple[str, ...] = ()
    current: bool = True
    url: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One executable check of a claim.

    `topologies` are those it is declared for, where known; `fact` is what it varies, `parameters`
    the keys of its rows, `source` its program as text that runs by itself.
    """

    clause: str
    section: str
    title: str
    claim: str
    fixes: str | None
    expected: Mapping[str, str]
    source: str
    module: str
    line: int
    topologies: tuple[str, ...] = ()
    fact: str = ""
    left_out: str = ""
    cause: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shows:
    """What a cause's program shows: what it prints, is ended by or ends as, and where."""

    implementation: tuple[str, ...]
    jax: str
    topology: tuple[str, ...]
    prints: str
    raises: str
    ends: str


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that JAX does and a user feels, with a program of plain JAX that shows it."""

    cause: str
    section: str
    title: str
    sentence: str
    cause_kind: str
    tags: tuple[str, ...]
    remedies: tuple[str, ...]
    links: tuple[str, ...]
    program: str
    command: str
    file: str
    shows: tuple[Shows, ...] = ()


@dataclass(frozen=True, slots=True)
class Strength:
    """How many wrong observations a clause's cells would notice, of those that were tried.

    `unnoticed` is how often each kind of wrong was let pass.
    """

    clause: str
    cells: int
    judged: int
    noticed: int
    unnoticed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """What an access moves on a slice of a TPU pod: `bytes` to each chip by all `collectives`.

    `result` and `array` are the bytes of the whole result and of the whole array that is read.
    """

    slice: str
    chips: int
    collectives: Mapping[str, int]
    bytes: int
    result: int
    array: int


@dataclass(frozen=True, slots=True)
class Growth:
    """How what an access moves grows with the pod: compiled for `chip`, run on nothing.

    It stands beside the clause that it is of; `row` is the bytes of what lies on one chip.
    """

    clause: str
    text: str
    implementation: str
    target: str
    jax: str
    libtpu: str
    chip: str
    row: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the judge looked at, in one process or (None) across them.

    `code` is what was compared; empty in results from before findings had one (`reading.codes`).
    """

    step: str | None
    process: int | None
    holds: bool
    expected: str
    saw: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Deviation:
    """The entry that makes a deviation a known one."""

    observed: str
    why: str
    link: str | None
    kind: str
    review: str | None
    jax: str | None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class FaultProcess:
    """What is known of one process of a cluster that crashed or hung."""

    process: int
    state: str
    signal: str | None
    exit: int | None
    stack: str | None
    log: str | None
    steps: tuple[str, ...] = ()
    in_step: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """How a cluster crashed or hung."""

    kind: str
    detail: str
    processes: tuple[FaultProcess, ...]
    mapped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One clause under one implementation, target and topology: what was seen and concluded.

    `run_of` is the clause for which the run was made that this cell judges, `program` the digest of
    what ran, `resumed` the id of the run that ran it where that was an earlier one; `lacks` are the
    packages or programs for want of which it was not run.
    """

    clause: str
    implementation: str
    target: str
    topology: str
    verdict: Verdict
    reason: str
    findings: Sequence[Finding]
    deviation: Deviation | None
    observations: Sequence[Mapping[str, Any]]
    fault: Fault | None
    seconds: float | None
    probe_seconds: float | None
    fresh: bool
    reproduce: str
    run_of: str = ""
    program: str = ""
    resumed: str = ""
    lacks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles, in seconds."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long it takes as `to`: median, least and most of the blocks."""

    to: str
    median: float
    low: float
    high: float
    blocks: int
    rounds: int
    says: str


@dataclass(frozen=True, slots=True)
class Timing:
    """A contender of the time lane: figures beside the clauses that it illustrates."""

    timing: str
    contender: str
    implementation: str
    target: str
    topology: str
    illustrates: tuple[str, ...]
    seconds: Spread | None
    rounds: int
    ratios: tuple[Ratio, ...]
    failed: str | None


KINDS: Mapping[str, type[Target | Claim | Clause | Cause | Cell | Strength | Timing | Growth]] = {
    "target": Target,
    "claim": Claim,
    "clause": Clause,
    "cause": Cause,
    "cell": Cell,
    "strength": Strength,
    "timing": Timing,
    "growth": Growth,
}


def decode(cls: type[T], value: object, where: str) -> T:
    """`value` as a `cls`; RecordError where a key is missing, unknown or of another type."""
    record: T = _decode(cls, value, where)
    return record


def _decode(cls: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError(f"{where} is {_kind_of(value)}, not an object")
    hints, required, plain = _shape(cls)
    if missing := sorted(required - value.keys()):
        raise RecordError(f"{where} lacks {', '.join(map(repr, missing))}")
    if unknown := sorted(value.keys() - hints.keys()):
        raise RecordError(f"{where} has the unknown key {', '.join(map(repr, unknown))}")
    return cls(
        **{
            k: v if type(v) in plain[k] else _convert(hints[k], v, f"{where}: {k!r}")
            for k, v in value.items()
        }
    )


@cache
def _shape(cls: Any) -> tuple[dict[str, Any], frozenset[str], dict[str, tuple[type, ...]]]:
    """The fields' types, which of them there must be, and what each may be as it stands."""
    required = {
        f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING
    }
    hints = get_type_hints(cls)
    return hints, frozenset(required), {name: _plain(hint) for name, hint in hints.items()}


def _plain(hint: Any) -> tuple[type, ...]:
    """The types of values that need no conversion: nearly all, in a file of a hundred thousand."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(one for part in get_args(hint) for one in _plain(part))
    if get_origin(hint) is Sequence:
        return (Lazily,)
    return (hint,) if hint in (str, int, float, bool, type(None)) else ()


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        inner = next(a for a in args if a is not type(None))
        return None if value is None else _convert(inner, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_convert(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Sequence and isinstance(value, list):
        return tuple(_convert(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {k: _convert(args[1], v, f"{where}: {k!r}") for k, v in value.items()}
    if is_dataclass(hint):
        return _decode(hint, value, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            known = ", ".join(str(m.value) for m in hint)
            raise RecordError(f"{where} is {value!r}, not one of: {known}") from None
    if hint is float and type(value) is int:
        return value
    # bool is an int to isinstance, never to a reader of the file.
    if isinstance(hint, type) and type(value) is hint:
        return value
    name = {tuple: "a list", Sequence: "a list", Mapping: "an object"}.get(origin) or getattr(
        hint, "__name__", hint
    )
    raise RecordError(f"{where} is {_kind_of(value)}, not {name}")


def _kind_of(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value), type(value).__name__)
