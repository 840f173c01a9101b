"""The records of a results file, each as one frozen structure.

A field's type and limits are what is read, written and published as the schema. A field with a
default was added after the first files were written: older ones lack it. What a worker observed
stays plain JSON, as observations grow with JAX and an older report must still show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Raw, Struct, field

from conformance.model.verdicts import Verdict

SCHEMA_VERSION = 1  # of what is written, and the newest that is read
JAX = "jax"  # the implementation of what maps nothing
MOST = 1e12  # seconds, or times as long: no timing is larger

Id: TypeAlias = Annotated[str, Meta(min_length=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]


def doc(description: str) -> Meta:
    """Describe a field in the schema."""
    return Meta(description=description)


class Item(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a record."""


class Record(Item, frozen=True, tag_field="kind"):
    """A line of a results file; its `kind` says which."""


class TargetKey(NamedTuple):
    """What tells two targets of merged files apart: "current" may be another JAX in each file."""

    target: str
    jax: str | None
    platform: str | None


class Core(Item, frozen=True):
    """How many runs the core tier took, and how many the full tier has, over all targets."""

    runs: int
    of: int


class Target(Record, frozen=True, tag="target"):
    """One JAX build that a run used, or that was not available. It precedes its cells."""

    schema: Annotated[
        int,
        Meta(ge=1, le=SCHEMA_VERSION, description="Version of this format."),
    ]
    target: Annotated[Id, doc("As it was asked for: jax==X, current, or an interpreter.")]
    jax: Annotated[str | None, doc("Null only where the target is unavailable.")]
    jaxlib: str | None
    numpy: str | None
    python: str | None
    platform: Annotated[
        str | None,
        doc("cpu, cuda, tpu or a plugin's name. Null only where the target is unavailable."),
    ]
    machine: str | None
    run: Annotated[str, doc("The same for all records of one run.")]
    started: Annotated[str, doc("ISO 8601 with offset.")]
    unavailable: Annotated[
        Id | None, doc("Why the target could not be had; all its cells are then 'not run'.")
    ]
    compiling: Annotated[
        str,
        doc("What of the compiler's work was left out, empty where it is JAX's own default."),
    ] = ""
    cores: Annotated[
        Count | None,
        doc("Cores that a worker could use. Left out in results from before it was recorded."),
    ] = None
    memory: Annotated[
        Count | None, doc("Bytes of memory of the workers' machine. Left out like cores.")
    ] = None
    device_kind: Annotated[
        str, doc("As JAX names it: NVIDIA H200. Empty in results from before it was recorded.")
    ] = ""
    packages: Annotated[
        Mapping[str, str], doc("Versions of the packages beyond jax that clauses import.")
    ] = field(default_factory=dict)
    core: Annotated[
        Core | None,
        doc(
            "Of a run of the core tier: how many runs it took, and how many the full tier has, over"
            " all its targets."
        ),
    ] = None

    def __post_init__(self) -> None:
        if not self.unavailable and not (self.jax and self.platform):
            raise ValueError("an available target needs 'jax' and 'platform'")

    @property
    def key(self) -> TargetKey:
        """The place of its cells in merged results."""
        return TargetKey(self.target, self.jax, self.platform)


class Claim(Record, frozen=True, tag="claim"):
    """One statement of a source document.

    All claims of the catalogue are listed: one without a clause is a gap.
    """

    slug: Id
    ref: Annotated[str, doc("Its number in the list of what the catalogue must cover.")]
    document: str
    document_title: str
    heading: str
    heading_hash: Annotated[str, doc("Of the heading's text at the reviewed revision.")]
    statement: Annotated[str, doc("In our own words.")]
    claim_kind: str
    outline: Annotated[str, doc("Slug of the document whatever its revision.")] = ""
    order: Annotated[int, Meta(ge=0, description="Place of the heading in the document.")] = 0
    revisions: Annotated[
        tuple[str, ...], doc("The reviewed revisions that make the statement, in their words.")
    ] = ()
    current: Annotated[bool, doc("Whether the newest reviewed revision makes it.")] = True
    url: Annotated[str, doc("Where the heading can be read in the newest revision.")] = ""

    @property
    def silent(self) -> bool:
        """Return whether no document says it: it is what should be as in legacy pmap, not what
        is.
        """
        return self.claim_kind == "silence"


class Clause(Record, frozen=True, tag="clause"):
    """One executable check of a claim. It stands before its cells."""

    clause: Annotated[Id, doc("Stable dotted id.")]
    section: str
    title: str
    claim: Annotated[Id, doc("Slug of its claim.")]
    fixes: Annotated[str | None, doc("Id of the clause whose error this one is a remedy for.")]
    expected: Annotated[Mapping[str, str], doc("Implementation to one line.")]
    source: Annotated[
        str,
        doc("Its row and its probe as they are written; empty before its first cell in the file."),
    ]
    module: str
    line: int
    topologies: Annotated[
        tuple[str, ...],
        doc(
            "Where the clause is declared to run. Without it, every topology of the results counts,"
            " and those without a cell are shown as 'not run'."
        ),
    ] = ()
    fact: Annotated[
        str, doc("What a reader would call one finding; several clauses may vary it.")
    ] = ""
    left_out: Annotated[
        str, doc("Why topologies are left out on which a reader would ask as well.")
    ] = ""
    cause: Annotated[str, doc("Slug of what changes for a user although the clause holds.")] = ""
    parameters: Annotated[
        Mapping[str, Any], doc("Of each table of a family the key of the clause's row.")
    ] = field(default_factory=dict)
    by_release: Annotated[
        tuple[str, ...],
        doc("The implementations of which another thing is expected from some release on."),
    ] = ()


class Shows(Item, frozen=True):
    """What the program of a known issue prints, is ended by or ends as, and where."""

    implementation: tuple[str, ...]
    jax: Annotated[str, doc("A range; empty is every one.")]
    topology: tuple[str, ...]
    prints: str
    raises: str
    ends: str
    commands: Annotated[
        Mapping[str, str], doc("How the program is started there, by implementation.")
    ] = field(default_factory=dict)


class Cause(Record, frozen=True, tag="cause"):
    """One thing that JAX does and a user notices. Deviations and clauses name it."""

    cause: Annotated[Id, doc("Its slug.")]
    section: str
    title: str
    sentence: str
    cause_kind: Annotated[str, doc("documentation, implementation or platform.")]
    tags: Annotated[
        tuple[str, ...], doc("Calls and parts of messages by which someone would search.")
    ]
    remedies: Annotated[tuple[str, ...], doc("Ids of clauses, the best first.")]
    links: tuple[str, ...]
    program: Annotated[str, doc("Plain JAX that shows it, as text that runs by itself.")]
    command: Annotated[str, doc("How the program is started.")]
    file: str
    shows: Annotated[
        tuple[Shows, ...], doc("What the program prints, is ended by or ends as, and where.")
    ] = ()
    edit: Annotated[
        str, doc("What someone changes in a program, as the first of the remedies does.")
    ] = ""
    part_of: Annotated[
        str, doc("Slug of the cause of the same defect of which this is one appearance.")
    ] = ""

    def shown_of(self, implementation: str) -> bool:
        """Return whether its program shows it of an implementation, by itself or as of any."""
        shown = {name for one in self.shows for name in one.implementation}
        return not shown or not shown.isdisjoint((implementation, JAX))


class Strength(Record, frozen=True, tag="strength"):
    """How many wrong observations a clause's recorded cells would notice."""

    clause: Id
    cells: Annotated[int, doc("How many were perturbed.")]
    judged: Annotated[int, doc("How many wrong observations were judged.")]
    noticed: int
    unnoticed: Annotated[Mapping[str, int], doc("Kind of wrong to how often it was let pass.")] = (
        field(default_factory=dict)
    )


class Point(Item, frozen=True):
    """What an access moves on a slice of a TPU pod."""

    slice: Annotated[str, doc("As libtpu names it.")]
    chips: Count
    collectives: Mapping[str, int]
    bytes: Annotated[int, doc("Moved to each chip.")]
    result: Annotated[int, doc("Bytes of the whole result.")]
    array: Annotated[int, doc("Bytes of the whole array read.")]


class Growth(Record, frozen=True, tag="growth"):
    """What an access moves as a TPU pod grows: compiled, run on nothing."""

    clause: Annotated[Id, doc("The clause that it stands beside.")]
    text: Annotated[str, doc("The access, in Markdown.")]
    implementation: Id
    target: Id
    jax: Id
    libtpu: Id
    chip: Annotated[str, doc("As JAX names the kind of device.")]
    row: Annotated[int, doc("Bytes of the array on one chip.")]
    points: Annotated[tuple[Point, ...], Meta(min_length=1)]


class Finding(Item, frozen=True):
    """One thing that the judge looked at."""

    step: Annotated[str | None, doc("Null: no step in particular.")]
    process: Annotated[int | None, doc("Null: across processes.")]
    holds: bool
    expected: str
    saw: str
    code: Annotated[
        str,
        doc(
            "What was compared, as one word; of a finding that does not hold, what is not as"
            " expected. Empty in results from before findings had it."
        ),
    ] = ""
    mistake: Annotated[str, doc("The known mistake whose values were seen, if any.")] = ""
    values: Annotated[
        Literal["", "right", "wrong", "unread"],
        doc("How the values compare of a step that returned where an error was expected."),
    ] = ""
    error_expected: Annotated[bool, doc("Whether an error was expected of the step.")] = False
    figure: Annotated[
        str,
        doc(
            "The key of the note that was compared. Empty if none was, and in results from before"
            " findings had it."
        ),
    ] = ""


class Deviation(Item, frozen=True):
    """The entry that makes a deviation a known one."""

    observed: str
    why: str
    link: str | None
    kind: Annotated[str, doc("documentation, implementation or platform.")]
    review: Annotated[str | None, doc("Date.")]
    jax: Annotated[str | None, doc("Range of versions.")]
    cause: Annotated[str, doc("Slug of its cause.")] = ""


class FaultProcess(Item, frozen=True):
    """What is known of one process of a cluster that crashed or hung."""

    process: int
    state: str
    signal: str | None
    exit: int | None
    stack: str | None
    log: str | None
    steps: Annotated[tuple[str, ...], doc("Those of its probe that it had finished.")] = ()
    in_step: Annotated[str, doc("The step that it was in, if any.")] = ""


class Fault(Item, frozen=True):
    """How the cluster crashed or hung.

    `mapped` is None in results from before it was recorded.
    """

    kind: Literal["crashed", "hung"]
    detail: str
    processes: tuple[FaultProcess, ...]
    mapped: Annotated[
        tuple[str, ...] | None, doc("The kinds of the maps that the processes had made.")
    ] = None


class Again(Item, frozen=True):
    """What the second run of a flaky cell saw, alone, after all other cells."""

    verdict: Verdict
    reason: str
    findings: Sequence[Finding]
    observations: Sequence[Mapping[str, Any]]
    fault: Fault | None


class Cell(Record, frozen=True, tag="cell"):
    """One clause under one implementation, target and topology."""

    clause: Id
    implementation: Id
    target: Annotated[Id, doc("As in the target record before it.")]
    topology: Annotated[Id, doc("PROCESSESxDEVICES of each process.")]
    verdict: Verdict
    reason: Annotated[str, doc("One line.")]
    findings: Sequence[Finding]
    deviation: Deviation | None
    observations: Sequence[Mapping[str, Any]]
    fault: Fault | None
    seconds: Annotated[Seconds | None, doc("The cell, with its cluster.")]
    probe_seconds: Annotated[Seconds | None, doc("The probe alone, in the slowest process.")]
    fresh: Annotated[bool, doc("Whether the cluster had run nothing before.")]
    reproduce: Annotated[str, doc("The command that runs this cell alone.")]
    run_of: Annotated[
        str,
        doc(
            "Id of the clause for which the run was made that this cell judges; several clauses may"
            " judge one."
        ),
    ] = ""
    program: Annotated[
        str,
        doc(
            "Digest of the program that ran, without its title: a cell of the same one need not run"
            " again."
        ),
    ] = ""
    resumed: Annotated[
        str, doc("Id of the earlier run that ran this cell, where this one only judged it.")
    ] = ""
    lacks: Annotated[
        tuple[str, ...], doc("Packages or programs for want of which the cell was not run.")
    ] = ()
    cpu_seconds: Annotated[
        Seconds | None, doc("CPU time of the probe, of all processes together.")
    ] = None
    again: Annotated[Again | None, doc("Of a flaky cell.")] = None


class CellLine(Cell, frozen=True, tag="cell"):
    """A cell as it is read: its long parts stay text until a reader asks for them."""

    findings: Raw  # type: ignore[assignment]
    observations: Raw  # type: ignore[assignment]


class Spread(Item, frozen=True):
    """Median and quartiles, in seconds."""

    median: Seconds
    low: Seconds
    high: Seconds

    def __post_init__(self) -> None:
        check_spread(self.low, self.median, self.high)


class Ratio(Item, frozen=True):
    """How many times longer one contender takes than another: median, minimum and maximum of the
    blocks.
    """

    to: Id
    median: Seconds
    low: Seconds
    high: Seconds
    blocks: Count
    rounds: Annotated[Count, doc("Of each block.")]
    says: Annotated[Id, doc("The ratio in words, or that the spread hides it.")]

    def __post_init__(self) -> None:
        check_spread(self.low, self.median, self.high)


def check_spread(low: float, median: float, high: float) -> None:
    """Raise ValueError where figures are in no order, or larger than any that is measured."""
    if not 0 <= low <= median <= high <= MOST:
        raise ValueError(
            f"the timing's figures {low:g}, {median:g}, {high:g} are no lower quartile, median and "
            f"upper quartile between 0 and {MOST:g}"
        )


class Timing(Record, frozen=True, tag="timing"):
    """One contender of the time lane: figures that illustrate clauses and judge nothing."""

    timing: Annotated[Id, doc("Stable dotted id of what was measured.")]
    contender: Id
    implementation: Id
    target: Annotated[Id, doc("As in the target record before it.")]
    topology: Annotated[Id, doc("PROCESSESxDEVICES of each process.")]
    illustrates: Annotated[tuple[Id, ...], doc("The clauses beside which it is shown.")]
    seconds: Annotated[
        Spread | None, doc("Of one call, in the slowest process. Null only where it failed.")
    ]
    rounds: Annotated[int, Meta(ge=0, description="Calls that were timed.")]
    ratios: tuple[Ratio, ...]
    failed: Annotated[Id | None, doc("Why there are no figures.")]
    verdict: Annotated[
        Verdict | None, doc("How the measured program was judged: its values must be right.")
    ] = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.failed is None):
            raise ValueError("a timing has either seconds or the reason why it failed")


KINDS: Mapping[str, type[Record]] = {
    "target": Target,
    "claim": Claim,
    "clause": Clause,
    "cause": Cause,
    "cell": Cell,
    "strength": Strength,
    "timing": Timing,
    "growth": Growth,
}
AnyRecord: TypeAlias = Target | Claim | Clause | Cause | Cell | Strength | Timing | Growth
