"""The records of a results file.

The fields of these classes are the keys of the format: `decode` takes them from the annotations,
so that a key cannot be read without being checked. What a worker observed stays plain JSON, as
observations grow with JAX and an older report must still show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.commandline.results import SCHEMA_VERSION as SCHEMA_VERSION
from reports.reading.decoding import RecordError as RecordError
from reports.reading.decoding import decode as decode
from reports.reading.verdicts import Verdict


class TargetKey(NamedTuple):
    """What tells two targets of merged files apart: "current" may be another JAX in each file."""

    target: str
    jax: str | None
    platform: str | None


JAX = "jax"  # the column of what maps nothing


@dataclass(frozen=True, slots=True)
class Core:
    """How many runs the core tier took, and how many the full tier has, over all targets."""

    runs: int
    of: int


@dataclass(frozen=True, slots=True)
class Target:
    """One JAX build that a run used, or could not get (`unavailable` says why).

    `core` is there where the run took the core tier of its cells.
    """

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
    cores: int | None = None
    memory: int | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    core: Core | None = None

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

    @property
    def silent(self) -> bool:
        """Whether no document says it: it is what should be as in legacy pmap, not what is."""
        return self.claim_kind == "silence"


@dataclass(frozen=True, slots=True)
class Clause:
    """One executable check of a claim.

    `topologies` are those it is declared for, where known; `fact` is what it varies, `parameters`
    the keys of its rows, `source` its program as it is written: empty where the files have no cell
    of it; `by_release` are the implementations of which another thing is expected from some release
    on.
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
    by_release: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shows:
    """What a cause's program shows: what it prints, is ended by or ends as, and where.

    `commands` are the shell's lines by which someone sees it, by implementation.
    """

    implementation: tuple[str, ...]
    jax: str
    topology: tuple[str, ...]
    prints: str
    raises: str
    ends: str
    commands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that JAX does and a user feels, with a program of plain JAX that shows it.

    `edit` is what the first of its remedies changes in a program, `part_of` the cause of the same
    defect of which it is one appearance.
    """

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
    edit: str = ""
    part_of: str = ""

    def shown_of(self, implementation: str) -> bool:
        """Whether its program shows it of an implementation, by itself or as of any."""
        shown = {name for one in self.shows for name in one.implementation}
        return not shown or not shown.isdisjoint((implementation, JAX))


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

    `code` is what was compared; empty in results from before findings had one (`reading.older`). Of
    a finding that does not hold, `mistake` names the known mistake whose values were seen, `values`
    says how they compare where an error was expected, and `error_expected` whether one was.
    """

    step: str | None
    process: int | None
    holds: bool
    expected: str
    saw: str
    code: str = ""
    mistake: str = ""
    values: str = ""
    error_expected: bool = False


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
    packages or programs for want of which it was not run; `again` is what a second run, alone, saw
    where the verdict is flaky.
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
    cpu_seconds: float | None = None
    again: Mapping[str, Any] | None = None


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
    verdict: Verdict | None = None


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
