"""The evidence of a cell's record, shortened for a page: findings, observations, faults, times.

Long values are cut with "…"; the command that reproduces the cell shows everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from conformance.commandline.counting import counted
from conformance.model.records import Cell, FaultProcess, Finding, Timing
from reports.render.measured import duration
from reports.render.site.observed import LeafView, ObservedView, StepView, leaf_view, observed
from reports.render.site.text import shortened
from reports.store.lazily import Lazily
from reports.store.outcomes import Run

_DETAIL = 1200  # characters of what is said of a fault
_SAW = 900
_STEP = 2  # spaces by which each level is set in
_VIEWS = 4  # different observations of one cell
_LEAVES = 6
_LINES = 6  # warnings, logs, programs
_VALUES, _MESSAGE, _REST, _LINE = 500, 1500, 600, 400
_STACK, _LOG = 1500, 1500
_FAULTY = 3
_FINDINGS = 12
AROUND = 600  # characters of markup and of the command that reproduces it
_PROOF = "proof"
_RUNS_KEPT, _LEAVES_KEPT = 256, 8192  # in memory at once


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding, once for all the processes that have it."""

    step: str
    processes: str
    expected: str
    saw: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """One record of a cell: its origin, and what it shows."""

    version: str
    topology: str
    cell: Cell
    source: str
    text: str
    run: str

    @property
    def size(self) -> int:
        """The approximate number of characters on a page."""
        return len(self.text) + AROUND


class Views:
    """Formatted observations, shared by all cells that judge the same run.

    Neighbouring clauses often share a run, and most arrays of a run are equal to others'.
    """

    __slots__ = ("_leaves", "_shown")

    def __init__(self) -> None:
        self._shown: dict[bytes, str] = {}
        self._leaves: dict[str, LeafView] = {}

    def shown(self, observations: Sequence[Mapping[str, Any]]) -> str:
        """Return the part of `observations` that a page shows."""
        if not isinstance(observations, Lazily):
            return self._made(observations)
        text = observations.text
        if text not in self._shown:
            _make_room(self._shown, _RUNS_KEPT)
            self._shown[text] = self._made(observations)
        return self._shown[text]

    def _made(self, observations: Sequence[Mapping[str, Any]]) -> str:
        views = observed(observations, self._leaf)
        lines = [line for view in views[:_VIEWS] for line in observed_lines(_observed(view))]
        if len(views) > _VIEWS:
            rest = counted(len(views) - _VIEWS, "more process", "more processes")
            lines.append(f"{rest} saw something else in turn")
        return "\n".join(lines)

    def _leaf(self, leaf: Mapping[str, Any]) -> LeafView:
        text = repr(leaf)
        if text not in self._leaves:
            _make_room(self._leaves, _LEAVES_KEPT)
            self._leaves[text] = _leaf(leaf_view(leaf))
        return self._leaves[text]


def _make_room(kept: dict[Any, Any], most: int) -> None:
    """Remove the oldest entries."""
    if len(kept) >= most:
        del kept[next(iter(kept))]


def evidence(run: Run, version: str, topology: str, views: Views) -> Evidence:
    """Return what the record of a run shows."""
    cell = run.cell
    fulfilled = [one for one in cell.findings if one.holds and one.step != _PROOF]
    failed = [one for one in cell.findings if not one.holds]
    lines = (
        *fault_lines(cell, (_process(one) for one in _odd_first(cell)[:_FAULTY])),
        views.shown(cell.observations),
        *failed_lines(failed[:_FINDINGS]),
        *held_lines(fulfilled[:_FINDINGS]),
        *known_lines(cell),
    )
    return Evidence(
        version=version,
        topology=topology,
        cell=cell,
        source=f"run {cell.resumed or run.run}",
        text="\n".join(filter(None, lines)),
        run=cell.resumed or run.run,
    )


def findings(some: Iterable[Finding]) -> tuple[FindingView, ...]:
    """Return findings, each once for all processes that agree on it."""
    return tuple(FindingView(*one) for one in joined(some))


def timing_text(timing: Timing) -> str:
    """Return a contender's figure, its spread and its ratios in one line."""
    what = timing.contender
    if timing.seconds is None:
        return f"{what}: not measured: {timing.failed}"
    took = timing.seconds
    ratios = "".join(f"; {one.says}" for one in timing.ratios)
    return (
        f"{what}: {duration(took.median)} ({duration(took.low)} to {duration(took.high)}, "
        f"{timing.rounds} rounds){ratios}"
    )


def _odd_first(cell: Cell) -> list[FaultProcess]:
    """Return the processes of a fault, those with the rarest end first."""
    processes = list(cell.fault.processes) if cell.fault else []
    ends = [(one.state, one.signal, one.exit) for one in processes]
    return sorted(processes, key=lambda one: ends.count((one.state, one.signal, one.exit)))


def _process(process: FaultProcess) -> FaultProcess:
    return structs.replace(
        process, stack=_tail(process.stack, _STACK), log=_tail(process.log, _LOG)
    )


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
        leaves=_bounded(step.leaves),
        programs=_lines(step.programs),
        warnings=_lines(step.warnings),
        logs=_lines(step.logs),
        rest=shortened(step.rest, _REST),
    )


def _bounded(leaves: tuple[LeafView, ...]) -> tuple[LeafView, ...]:
    """Return the first arrays, and a last line with the number of the others."""
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


# The same as lines of text: a third of the room of elements, and it can be copied whole.


def observed_lines(view: ObservedView) -> Iterator[str]:
    """Yield what a process saw, or several that saw the same."""
    yield view.who
    shown: StepView | None = None
    for step in view.steps:
        repeats = shown is not None and step.leaves == shown.leaves and step.tree == shown.tree
        yield from _indented(_step_lines(step, shown if repeats else None))
        if not repeats:
            shown = step
    yield from _indented([f"ran: {view.ran}"] if view.ran else [])
    yield from _indented([view.rest] if view.rest else [])


def fault_lines(cell: Cell, processes: Iterable[FaultProcess]) -> Iterator[str]:
    """Yield how a job ended that ended badly, and `processes` of it with stacks and logs."""
    if cell.fault is None:
        return
    yield f"{cell.fault.kind}: {cell.fault.detail[:_DETAIL]}"
    for one in processes:
        signal = f", signal {one.signal}" if one.signal else ""
        status = "" if one.exit is None else f", exit status {one.exit}"
        yield f"process {one.process}: {one.state}{signal}{status}"
        for what, text in (("stack", one.stack), ("end of its log", one.log)):
            if text:
                yield from _indented((f"{what}:", *_indented([text])))


def failed_lines(some: Iterable[Finding]) -> Iterator[str]:
    """Yield what was expected and what was seen instead, once for the processes that agree."""
    for number, (step, processes, expected, saw) in enumerate(joined(some)):
        if number == 0:
            yield "not as expected"
        lines = (f"{_at(step, processes)}: expected {expected}", *_indented([f"saw {saw}"]))
        yield from _indented(lines)


def held_lines(some: Iterable[Finding]) -> Iterator[str]:
    """Yield what was seen as it was expected, once for the processes that agree."""
    for number, (step, processes, _, saw) in enumerate(joined(some)):
        if number == 0:
            yield "as expected"
        yield from _indented([f"{_at(step, processes)}: {saw}"])


def _at(step: str, processes: str) -> str:
    return step if processes == "all" else f"{step}, process {processes}"


def known_lines(cell: Cell) -> Iterator[str]:
    """Yield what the entry says that describes a known deviation."""
    if (known := cell.deviation) is None:
        return
    jax = f", JAX {known.jax}" if known.jax else ""
    review = f", to be reviewed {known.review}" if known.review else ""
    yield f"known deviation, {known.kind}{jax}{review}: seen as {known.observed}"


def joined(some: Iterable[Finding]) -> list[tuple[str, str, str, str]]:
    """Return step, processes, what was expected and what was seen, equal ones once."""
    same: dict[tuple[str, str, str], list[str]] = {}
    for one in some:
        processes = same.setdefault((one.step or "all", one.expected, one.saw), [])
        processes.append("all" if one.process is None else str(one.process))
    return [
        (step, ", ".join(dict.fromkeys(processes)), shortened(expected, _SAW), shortened(saw, _SAW))
        for (step, expected, saw), processes in same.items()
    ]


def _step_lines(step: StepView, same: StepView | None) -> Iterator[str]:
    """Yield what a step did; the arrays of `same`, an earlier step with equal ones, are named."""
    cost = f" ({step.seconds})" if step.seconds else ""
    yield f"{step.name}: {step.outcome} {step.headline}".rstrip() + cost
    below = [step.message]
    if same is not None and step.leaves:
        below.append(f"the same as: {same.name}")
    else:
        below.append(f"tree {step.tree}" if step.tree else "")
        for leaf in step.leaves:
            below += _leaf_lines(leaf, len(step.leaves) > 1)
    below += (f"compiled {one}" for one in step.programs)
    below += (f"warning {one}" for one in step.warnings)
    below += (f"log {one}" for one in step.logs)
    below += (step.frames, step.rest)
    yield from _indented(below)


def _leaf_lines(leaf: LeafView, several: bool) -> Iterator[str]:
    below = (leaf.sharding, leaf.values, leaf.rest)
    if several:
        yield f"{leaf.path or '.'}: {leaf.summary}"
        yield from _indented(below)
    else:
        yield from below


def _indented(lines: Iterable[str]) -> Iterator[str]:
    pad = " " * _STEP
    for line in filter(None, lines):
        yield pad + line.replace("\n", f"\n{pad}")
