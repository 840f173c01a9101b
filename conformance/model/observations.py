"""What one process saw, in the form in which readers compare it.

A record keeps it as plain JSON, and further keys are allowed: observations grow with JAX. A key
that is known has its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Struct

from conformance.model.records import doc

DEFAULT_MEMORY = "device"
ONE_MEMORY = "unpinned_host"  # the only one of a CPU's device before 0.7.1, and so its default


class Open(Struct, frozen=True):
    """An object that may have more keys than are known."""


class Warned(Open, frozen=True):
    """A warning, and how often it was emitted."""

    category: str = ""
    message: str = ""
    count: int = 1


class Logged(Open, frozen=True):
    """A log record."""

    logger: str = ""
    level: str = ""
    message: str = ""


class Sharding(Open, frozen=True):
    """Where an array's shards are."""

    type: str = ""
    devices: Sequence[int | str] = ()
    mesh: Mapping[str, int | str | Sequence[Any]] | None = None


class Leaf(Open, frozen=True):
    """One leaf of a returned value."""

    type: str
    path: str = ""
    shape: Sequence[int] | None = None
    dtype: str | None = None
    weak_type: bool | None = None
    committed: bool | None = None
    sharding: Sharding | None = None
    values: Annotated[
        Sequence[Any] | None,
        doc("Elements in row order, or nested; non-finite numbers as strings."),
    ] = None
    local_shape: Sequence[int] | None = None
    shards: Sequence[Any] | None = None
    text: str | None = None


class Returned(Open, frozen=True):
    """What a step returned."""

    tree: str = ""
    leaves: Sequence[Leaf] = ()


class Raised(Open, frozen=True):
    """What a step raised."""

    type: str
    message: str
    bases: Sequence[str] = ()
    module: str | None = None
    phase: str | None = None
    frames: Sequence[str] = ()


class Moved(Open, frozen=True):
    """What a step's compiled programs move between devices."""

    collectives: Mapping[str, int] | None = None
    bytes: int = 0
    result: int = 0
    array: int = 0
    programs: int = 0
    runs: int = 0


class Memory(Open, frozen=True):
    """The memory that a step took, as a multiple of what it has to take."""

    multiple: float = 0.0
    what: str = ""


class Collective(Open, frozen=True):
    """One collective operation of a compiled program."""

    operation: str = ""
    bytes: int = 0
    shape: str = ""


class Program(Open, frozen=True):
    """One compiled program."""

    name: str = ""
    collectives: Sequence[Collective] = ()
    memory: Mapping[str, int] | None = None


class Repeated(Open, frozen=True):
    """What a repetition compiled and traced."""

    compiled: int = 0
    traced: int = 0


class Extra(Open, frozen=True):
    """What a probe or an instrument noted beside a step."""

    moved: Moved | None = None
    memory: Memory | None = None
    programs: Sequence[Program] = ()
    again: Repeated | None = None


class Step(Open, frozen=True):
    """One thing that the probe did."""

    name: str
    outcome: Annotated[str, doc("returned or raised.")]
    value: Annotated[Returned | None, doc("What it returned.")] = None
    exception: Annotated[Raised | None, doc("What it raised.")] = None
    seconds: float | None = None
    compiled: Annotated[int, doc("How many programs JAX compiled in it.")] = 0
    warnings: Sequence[Warned] = ()
    logs: Sequence[Logged] = ()
    extra: Extra | None = None


class Between(Open, frozen=True):
    """Warnings and log records of the probe outside its steps."""

    warnings: Sequence[Warned] = ()
    logs: Sequence[Logged] = ()


class Witness(Open, frozen=True):
    """A wrapper that the probe made, and the shardings of its outputs."""

    wrapper: str = ""
    outputs: Sequence[str] = ()
    traced: Sequence[str] = ()
    raised: bool = False


class Observation(Open, frozen=True):
    """What one process saw. Open: further keys are allowed and shown as they are."""

    process: int
    steps: Sequence[Step]
    jax: str = ""
    implementation: str = ""
    processes: int = 0
    between: Between | None = None
    witness: Sequence[Witness] = ()
    compiled: Mapping[str, Any] | None = None
    seconds: float = 0.0
