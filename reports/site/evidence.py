"""What a cell's record proves, cut to what a page can hold: findings, observations, faults, times.

A page is read by people: what is long is cut with "…", and the command that reproduces the cell
brings back the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reports.reading.outcomes import Run
from reports.reading.records import Cell, FaultProcess, Finding, Timing
from reports.site.observed import LeafView, ObservedView, StepView, observed
from reports.site.text import shortened

_VIEWS = 4  # different observations of one cell
_LEAVES = 6
_LINES = 6  # warnings, logs, programs
_VALUES, _MESSAGE, _REST, _LINE = 500, 1500, 600, 400
_STACK, _LOG = 1500, 1500
_FAULTY = 3
_FINDINGS = 12
_SAW = 900
_PROOF = "proof"


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding, once for all the processes in which it is the same."""

    step: str
    processes: str
    expected: str
    saw: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """One record of a cell: where it is from, and what it shows."""

    version: str
    topology: str
    cell: Cell
    source: str
    held: tuple[FindingView, ...]
    failed: tuple[FindingView, ...]
    observed: tuple[ObservedView, ...]
    unseen: int
    faulty: tuple[FaultProcess, ...]

    @property
    def size(self) -> int:
        """About how many characters it takes on a page."""
        return sum(map(_length, (*self.held, *self.failed, *self.observed, *self.faulty))) + 600


def evidence(run: Run, version: str, topology: str) -> Evidence:
    """What the record of a run shows."""
    cell = run.cell
    views = observed(cell.observations)
    return Evidence(
        version=version,
        topology=topology,
        cell=cell,
        source=f"{run.file}, run {run.run}",
        held=findings(f for f in cell.findings if f.holds and f.step != _PROOF)[:_FINDINGS],
        failed=findings(f for f in cell.findings if not f.holds)[:_FINDINGS],
        observed=tuple(_observed(view) for view in views[:_VIEWS]),
        unseen=max(0, len(views) - _VIEWS),
        faulty=tuple(_process(one) for one in _odd_first(cell)[:_FAULTY]),
    )


def findings(some: Iterable[Finding]) -> tuple[FindingView, ...]:
    """Findings, each once for all processes that agree on it."""
    same: dict[tuple[str, str, str], list[str]] = {}
    for f in some:
        processes = same.setdefault((f.step or "all", f.expected, f.saw), [])
        processes.append("all" if f.process is None else str(f.process))
    return tuple(
        FindingView(
            step,
            ", ".join(dict.fromkeys(processes)),
            shortened(expected, _SAW),
            shortened(saw, _SAW),
        )
        for (step, expected, saw), processes in same.items()
    )


def timing_said(timing: Timing) -> str:
    """A contender's figure, its spread and its ratios in one line."""
    what = f"{timing.timing}, {timing.contender}"
    if timing.seconds is None:
        return f"{what}: not measured: {timing.failed}"
    took = timing.seconds
    ratios = "".join(f"; {one.says}" for one in timing.ratios)
    return (
        f"{what}: {duration(took.median)} ({duration(took.low)} to {duration(took.high)}, "
        f"{timing.rounds} rounds){ratios}"
    )


def duration(seconds: float) -> str:
    """Seconds in the unit that a reader would choose."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _odd_first(cell: Cell) -> list[FaultProcess]:
    """The processes of a fault: those that ended as few others did come first."""
    processes = list(cell.fault.processes) if cell.fault else []
    ends = [(one.state, one.signal, one.exit) for one in processes]
    return sorted(processes, key=lambda one: ends.count((one.state, one.signal, one.exit)))


def _process(one: FaultProcess) -> FaultProcess:
    return replace(one, stack=_tail(one.stack, _STACK), log=_tail(one.log, _LOG))


def _tail(text: str | None, limit: int) -> str | None:
    return text if text is None or len(text) <= limit else "…" + text[-limit:]


def _observed(view: ObservedView) -> ObservedView:
    return replace(
        view,
        ran=shortened(view.ran, _LINE),
        steps=tuple(_step(step) for step in view.steps),
        rest=shortened(view.rest, _REST),
    )


def _step(step: StepView) -> StepView:
    return replace(
        step,
        headline=shortened(step.headline, _LINE),
        message=shortened(step.message, _MESSAGE),
        frames=shortened(step.frames, _REST),
        tree=shortened(step.tree, _LINE),
        leaves=tuple(_leaf(leaf) for leaf in _bounded(step.leaves)),
        programs=_lines(step.programs),
        warnings=_lines(step.warnings),
        logs=_lines(step.logs),
        rest=shortened(step.rest, _REST),
    )


def _bounded(leaves: tuple[LeafView, ...]) -> tuple[LeafView, ...]:
    """The first arrays, and a last line that says how many more there are."""
    if len(leaves) <= _LEAVES:
        return leaves
    more = LeafView("…", f"{len(leaves) - _LEAVES} more arrays", "", "", "")
    return (*leaves[:_LEAVES], more)


def _lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    more = (f"… {len(lines) - _LINES} more",) if len(lines) > _LINES else ()
    return (*(shortened(line, _LINE) for line in lines[:_LINES]), *more)


def _leaf(leaf: LeafView) -> LeafView:
    return replace(
        leaf,
        path=shortened(leaf.path, _LINE),
        summary=shortened(leaf.summary, _LINE),
        sharding=shortened(leaf.sharding, _LINE),
        values=shortened(leaf.values, _VALUES),
        rest=shortened(leaf.rest, _REST),
    )


def _length(value: object) -> int:
    """How many characters of text a record of records holds, with some for its markup."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(_length, value))
    slots = getattr(value, "__slots__", ())
    return sum(_length(getattr(value, name)) for name in slots) + 120 * bool(slots)
