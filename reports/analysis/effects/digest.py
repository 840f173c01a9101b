"""The part of a cell that a user could notice, small, hashable and quickly compared.

An observation contains much that no user notices: frames, durations, version strings. Cells that a
user cannot tell apart have equal digests, so that of a hundred thousand cells only a few thousand
different pairs need comparison. Observations are plain JSON of any version of this program: what
has an unknown form is ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.model.observations import DEFAULT_MEMORY, ONE_MEMORY
from conformance.model.records import Cell, Fault
from reports.analysis.comparing.fields import message_kept
from reports.store.alike import failed as failed_of
from reports.store.older import completed
from reports.store.order import version_order

Json = Mapping[str, Any]

RETURNED, RAISED = "returned", "raised"

_PROCESS = "process "  # how the step of a process of a plain job is named
WHOLE_JOB = "the job"  # a step that starts a job, and returns a value of each of its processes
_PARTED = " | "  # the lines of the text that a plain job noted
_MESSAGE_SHOWN = 240  # characters of an error's text in a sentence
_SEVERAL_MEMORIES = version_order("0.7.1")  # the JAX since which a CPU's device has several
_SAME_ERROR = {"XlaRuntimeError": "JaxRuntimeError"}  # two names of one class


class Leaf(NamedTuple):
    """An array, or another value, as a user's next line would see it."""

    type: str
    shape: tuple[int, ...]
    local: tuple[int, ...] | None
    dtype: str
    weak: bool | None
    values: tuple[Any, ...] | None
    text: str
    committed: bool | None
    devices: tuple[int, ...] | None
    memory_kind: str
    deleted: bool


class Failed(NamedTuple):
    """A failed comparison, with the fields of `reading.records.Finding`."""

    code: str
    saw: str
    mistake: str = ""
    values: str = ""
    error_expected: bool = False


class Step(NamedTuple):
    """How one step of a probe ended in one process, and its cost."""

    name: str
    outcome: str
    error: str = ""
    message: str = ""
    known_by: str = ""
    leaves: tuple[Leaf, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    collectives: tuple[tuple[str, int], ...] | None = None
    moved_bytes: int = 0
    by_host: bool | None = None
    compiled: int | None = None
    functions: int | None = None
    memory: float | None = None
    reused: int | None = None
    gone: tuple[bool, ...] | None = None
    placement: tuple[tuple[int, ...], ...] | None = None
    failed: tuple[Failed, ...] = ()
    job: str = ""  # how a process of a plain job ended: "exit 0", "SIGABRT", "hangs"


class Died(NamedTuple):
    """How a cluster crashed or hung, and what the first process was doing."""

    kind: str
    signals: tuple[str, ...]
    detail: str
    in_step: str


@dataclass(frozen=True, slots=True)
class Digest:
    """The noticeable part of a cell: how it crashed, or the steps of each process."""

    died: Died | None
    processes: tuple[tuple[int, tuple[Step, ...]], ...]
    holds: bool
    failed: tuple[Failed, ...] = field(default=())

    def steps(self) -> Iterator[tuple[int, Step]]:
        """Yield every step with its process."""
        for process, steps in self.processes:
            for step in steps:
                yield process, step

    @property
    def job_processes(self) -> int:
        """Return how many processes a plain job has: a step or a value each; 0 if it is none."""
        steps = [step for _, step in self.steps()]
        started = {step.name for step in steps if of_job(step.name)}
        answered = max((len(one.leaves) for one in steps if one.name == WHOLE_JOB), default=0)
        return max(len(started), answered)


def of_job(step: str) -> bool:
    """Return whether a step is a process of a plain job."""
    return step.startswith(_PROCESS)


def digest(cell: Cell) -> Digest:
    """Return the part of `cell` that a user could notice."""
    failed: dict[tuple[str, int | None], list[Failed]] = {}
    for one in map(completed, failed_of(cell)):
        key = (one.step or "", one.process)
        failed.setdefault(key, []).append(
            Failed(one.code, one.saw, one.mistake, one.values, one.error_expected)
        )
    return Digest(
        died=_died(cell.fault),
        processes=tuple(
            (_process(observation), steps)
            for observation in sorted(cell.observations, key=_process)
            if (steps := _known(observation, failed)) is not None
        ),
        holds=cell.verdict == "conforms",
        failed=tuple(dict.fromkeys(f for some in failed.values() for f in some)),
    )


def _known(
    observation: Json, failed: Mapping[tuple[str, int | None], list[Failed]]
) -> tuple[Step, ...] | None:
    """Return the steps of a process; None if its record has an unknown form."""
    try:
        steps = tuple(_steps(observation, _process(observation), failed))
        hash(steps)
    except (AttributeError, TypeError, ValueError, LookupError):
        return None
    return steps


def _process(observation: Json) -> int:
    process = observation.get("process")
    return process if isinstance(process, int) else 0


def _died(fault: Fault | None) -> Died | None:
    if fault is None:
        return None
    signals = sorted({one.signal for one in fault.processes if one.signal})
    steps = [one.in_step for one in fault.processes if one.in_step]
    return Died(fault.kind, tuple(signals), fault.detail, steps[0] if steps else "")


def _steps(
    observation: Json,
    process: int,
    failed: Mapping[tuple[str, int | None], list[Failed]],
) -> Iterator[Step]:
    """Yield the steps, numbering those of the same name."""
    counted: Counter[str] = Counter()
    one_memory = version_order(str(observation.get("jax") or "")) < _SEVERAL_MEMORIES
    for record in map(_map, _list(observation.get("steps"))):
        name = str(record.get("name"))
        counted[name] += 1
        wrong = failed.get((name, process), ())
        shown = name if counted[name] == 1 else f"{name} ({counted[name]})"
        step = _step(shown, record, tuple(wrong))
        yield step._replace(leaves=tuple(map(_renamed, step.leaves))) if one_memory else step


def _renamed(leaf: Leaf) -> Leaf:
    """Return an array in the one memory that a CPU's device had, by that memory's later name."""
    return leaf._replace(memory_kind=DEFAULT_MEMORY) if leaf.memory_kind == ONE_MEMORY else leaf


def _step(name: str, record: Json, failed: tuple[Failed, ...]) -> Step:
    leaves = _list(_map(record.get("value")).get("leaves"))
    warnings = _list(record.get("warnings"))
    step = Step(
        name,
        str(record.get("outcome")),
        leaves=tuple(_leaf(_map(leaf)) for leaf in leaves),
        warnings=tuple(sorted(_warning(_map(one)) for one in warnings)),
        compiled=record.get("compiled"),
        failed=failed,
    )
    if exception := _map(record.get("exception")):
        step = step._replace(**_raised(exception))
    if extra := _map(record.get("extra")):
        step = step._replace(**_noted(extra, step.compiled))
    return step


def _raised(exception: Json) -> dict[str, Any]:
    message = " ".join(str(exception.get("message") or "").split())
    error = str(exception.get("type") or "")
    return {
        "error": _SAME_ERROR.get(error, error),
        "message": message[:_MESSAGE_SHOWN],
        "known_by": message_kept(message) if message else "",
    }


def _warning(record: Json) -> tuple[str, str]:
    return str(record.get("category")), " ".join(str(record.get("message")).split())


def _noted(extra: Json, compiled: int | None) -> dict[str, Any]:
    """Return what a probe noted beside the result."""
    again = extra.get("again")
    if isinstance(again, dict) and isinstance(again.get("compiled"), int):
        compiled = again["compiled"]
    collectives, moved_bytes, by_host = _moved(extra, compiled)
    return {
        "compiled": compiled,
        "collectives": collectives,
        "moved_bytes": moved_bytes,
        "by_host": by_host,
        "functions": _functions(extra),
        "memory": _multiple(extra),
        "reused": _reused(extra),
        "gone": _gone(extra),
        "placement": _placement(extra),
        "job": job_end(extra)[0],
    }


def _leaf(record: Json) -> Leaf:
    sharding = _map(record.get("sharding"))
    devices, shape = sharding.get("devices"), record.get("shape")
    values, local = record.get("values"), record.get("local_shape")
    return Leaf(
        type=str(record.get("type")),
        shape=_frozen(_list(shape)),
        local=_frozen(local) if isinstance(local, list) else None,
        dtype=str(record.get("dtype")),
        weak=record.get("weak_type"),
        values=_frozen(values) if isinstance(values, list) else None,
        text="" if values is not None else str(record.get("text") or ""),
        committed=record.get("committed"),
        devices=tuple(devices) if isinstance(devices, list) else None,
        memory_kind=str(sharding.get("memory_kind") or ""),
        deleted=bool(record.get("deleted")),
    )


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _frozen(values: list[Any]) -> tuple[Any, ...]:
    if not values or not isinstance(values[0], list):
        return tuple(values)
    return tuple(map(tuple, values))


def job_end(extra: Json) -> tuple[str, ...]:
    """Return how a process of a plain job ended, then the lines that it printed, as noted."""
    text = extra.get("text")
    return tuple(text.split(_PARTED)) if isinstance(text, str) else ("",)


def _moved(
    extra: Json, compiled: int | None
) -> tuple[tuple[tuple[str, int], ...] | None, int, bool | None]:
    """Return the collectives that a step ran or compiled, their bytes, and whether the host was
    used.
    """
    moved = extra.get("moved")
    if isinstance(moved, dict):
        counted = moved.get("collectives") or {}
        ran = moved.get("bytes")
        if not isinstance(ran, int):
            # Noted are the bytes of what was compiled: of a step that compiled nothing, nothing.
            known = (*sorted(counted.items()),) if compiled else None
            return known, sum(counted.values()), None
        host = moved.get("host")
        return tuple(sorted(counted.items())), ran, None if host is None else bool(host)
    programs = extra.get("programs")
    if not isinstance(programs, list):
        return None, 0, None
    each = [one for program in programs for one in program.get("collectives") or ()]
    kinds = Counter(str(one.get("operation")) for one in each)
    return tuple(sorted(kinds.items())), sum(int(one.get("bytes") or 0) for one in each), None


def _functions(extra: Json) -> int | None:
    """Return how many Python functions a call ran, rounded, because versions differ by a few."""
    found = extra.get("Python functions", extra.get("more than under jit"))
    return to_one_digit(found) if isinstance(found, int) else None


def to_one_digit(count: int) -> int:
    """Round a number to its first digit."""
    return int(float(f"{count:.0e}"))


def _multiple(extra: Json) -> float | None:
    memory = extra.get("memory")
    found = memory.get("multiple") if isinstance(memory, dict) else None
    return float(found) if isinstance(found, int | float) else None


def _reused(extra: Json) -> int | None:
    """Return how many donated buffers an output reused."""
    memory = extra.get("memory")
    found = memory.get("reused") if isinstance(memory, dict) else extra.get("buffers reused")
    return int(found[0]) if isinstance(found, list) and found else None


def _gone(extra: Json) -> tuple[bool, ...] | None:
    """Return, for each donated argument, whether it is deleted."""
    for key in ("donated deleted", "given up", "gone"):
        if isinstance(extra.get(key), list):
            return tuple(bool(one) for one in extra[key])
    return None


def _placement(extra: Json) -> tuple[tuple[int, ...], ...] | None:
    lies = extra.get("lies")
    if not isinstance(lies, list) or not all(isinstance(one, list) for one in lies):
        return None
    return tuple(tuple(one) for one in lies)
