"""Render how a script's job ended, as text and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from conformance.commandline.counting import counted
from harness.targets.target import parse_spec
from harness.usercode.ending import Job, Outcome, Process

Tail = Callable[[int], str]  # the last lines that a process printed


def summary(job: Job) -> Iterator[str]:
    """Yield what happened, a line each, first the process that failed first."""
    first = job.first
    if job.outcome is Outcome.HUNG:
        yield from _hung(job)
    elif job.outcome is Outcome.INTERRUPTED:
        yield f"interrupted after {job.seconds:.1f} s; no process is left"
    if first is not None and job.outcome is not Outcome.INTERRUPTED:
        yield f"{first.name} failed first, after {first.seconds:.1f} s: {first.end}"
        rest = [p for p in job.processes if p is not first]
        if rest:
            yield f"then {'; '.join(_together(rest))}"
    if job.outcome is Outcome.SUCCEEDED:
        every = counted(len(job.processes), "process", "processes")
        yield f"{every} ended with exit status 0 after {job.seconds:.1f} s ({_ran(job)})"
    yield from remarks(job)


def remarks(job: Job) -> Iterator[str]:
    """Yield what a user should know of a job besides how it ended."""
    count = len(job.processes)
    noted = [p for p in job.processes if p.jax is not None]
    without_processes = [p for p in noted if p.processes is None]
    if count > 1 and noted and len(without_processes) == len(noted):
        yield (
            "the processes did not join: each ran as a job of its own; call "
            "jax.distributed.initialize() before the first computation"
        )
    spec = parse_spec(job.target)
    other = sorted({p.jax for p in noted if p.jax} - {spec.value})
    if spec.kind == "version" and other:
        yield (
            f"the processes imported jax {', '.join(other)}, not {spec}: "
            "remove the other one from PYTHONPATH"
        )


def stacks(job: Job) -> Iterator[str]:
    """Yield the Python stacks of the processes that were asked, the odd one first."""
    odd = job.odd
    shown = sorted((p for p in job.processes if p.stack), key=lambda p: p is not odd)
    for one in shown:
        yield f"{one.name}, Python stack, innermost call first:"
        yield from (f"    {line}" for line in one.stack.splitlines())


def markdown(job: Job, tail: Tail) -> str:
    """Return the report as Markdown, with the last lines of each process that failed."""
    lines = [f"# {job.outcome.capitalize()}: {job.topology}, {job.target}", ""]
    lines += [f"{line[0].upper()}{line[1:]}.\n" for line in summary(job)]
    lines += ["| process | after | end |", "|---|---|---|"]
    lines += [
        f"| {p.name.removeprefix('process ')} | {p.seconds:.1f} s | {_cell(p.end)} |"
        for p in job.processes
    ]
    for one in job.processes:
        if one.stack or one.failed:
            lines += ["", f"## Process{one.name.removeprefix('process')}", ""]
        for title, text in (
            ("Python stack, innermost call first:", one.stack),
            ("The end of its output:", tail(one.number) if one.failed else ""),
        ):
            if text:
                lines += [title, "", *_block(text)]
    return "\n".join(lines)


def _hung(job: Job) -> Iterator[str]:
    yield f"hung: no end within {job.deadline_s:g} s (--deadline)"
    yield from _still_running(job)


def _still_running(job: Job) -> Iterator[str]:
    """Yield where each process was that this command ended, the odd one first."""
    odd = job.odd
    for one in sorted((p for p in job.processes if p.code is None), key=lambda p: p is not odd):
        yield f"{one.name}: {one.end}"


def _ran(job: Job) -> str:
    versions = sorted({p.jax for p in job.processes if p.jax})
    return f"{job.topology}, jax {', '.join(versions)}" if versions else job.topology


def _together(some: Iterable[Process]) -> Iterator[str]:
    """Yield how processes ended, grouped by equal ends."""
    found: dict[str, list[int]] = {}
    for one in sorted(some, key=lambda p: p.seconds):
        found.setdefault(one.end, []).append(one.number)
    for end, numbers in found.items():
        name = "process" if len(numbers) == 1 else "processes"
        yield f"{name} {', '.join(map(str, sorted(numbers)))}: {end}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _block(text: str) -> list[str]:
    """Return an indented block, which no text can end."""
    return [f"    {line}" for line in text.splitlines()]
