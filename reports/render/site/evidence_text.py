"""Evidence as text: what each process saw, and what was expected of it, as one block of lines.

Text takes a third of the room of elements, needs no script, and can be copied into an issue whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.model.records import Cell, FaultProcess, Finding
from reports.render.site.observed import LeafView, ObservedView, StepView
from reports.render.site.text import shortened

_DETAIL = 1200  # characters of what is said of a fault
_SAW = 900
_STEP = 2  # spaces by which each level is set in


def observed_lines(view: ObservedView) -> Iterator[str]:
    """Yield what a process saw, or several that saw the same."""
    yield view.who
    for step in view.steps:
        yield from _indented(_step_lines(step))
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


def _step_lines(step: StepView) -> Iterator[str]:
    cost = f" ({step.seconds})" if step.seconds else ""
    yield f"{step.name}: {step.outcome} {step.headline}".rstrip() + cost
    below = [step.message, f"tree {step.tree}" if step.tree else ""]
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
