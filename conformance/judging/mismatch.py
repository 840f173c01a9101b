"""Which fields of a deviation entry differ from what was observed, as text for its author."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from conformance.judging.deviations import Deviation, Patterns
from conformance.judging.seen import Difference, steps_of
from conformance.spec.expectation import Finding
from conformance.spec.faults import Fault
from conformance.spec.observation import Observation, Step, shortened

MOST = 4  # differences that are shown
MOST_OF_A_VALUE = 160  # characters


def mismatch(
    entry: Deviation,
    findings: Sequence[Finding],
    observations: Sequence[Observation],
    fault: Fault | None = None,
) -> str:
    """Return where an entry that does not explain these findings differs from them.

    The arguments are those of `Deviation.explains`. The text is empty only if that returns True.
    """
    found = list(_lines(entry, findings, observations, fault))
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return "; ".join(found[:MOST] + more)


def _lines(
    entry: Deviation,
    findings: Sequence[Finding],
    observations: Sequence[Observation],
    fault: Fault | None,
) -> Iterator[str]:
    failed = [one for one in findings if not one.holds]
    if not failed:
        yield from _of_fault(entry, fault)
        return
    if entry.fault is not None:
        yield f"fault: expected {entry.fault}, observed none"
        return
    if entry.saw and not entry.names_the_step(findings):
        yield "saw is of one step, and several are compared: name each that fails by steps"
        return
    together: dict[str, dict[int, list[Finding]]] = {}
    for one in failed:
        together.setdefault(one.step, {}).setdefault(one.process, []).append(one)
    steps = steps_of(observations)
    for name, patterns in ({} if entry.saw else entry.steps).items():
        if name not in together:
            yield f"“{name}”: expected {_any_of(patterns)}, but nothing fails there"
    every = {one.process for one in findings}
    for name, by_process in together.items():
        if not (patterns := entry.saw or entry.steps.get(name, ())):
            yield f"“{name}” fails, and the entry does not name it"
            continue
        expected = entry.processes_in(name, every)
        if by_process.keys() != expected:
            text = f"expected {_numbers(expected)}, observed {_numbers(by_process)}"
            yield f"processes in which “{name}” fails: {text}"
        there: dict[str, list[int]] = {}
        for process, some in by_process.items():
            for difference in _nearest(patterns, steps.get((process, name)), some):
                there.setdefault(_in_words(difference), []).append(process)
        for text, differing in there.items():
            where = "" if len(differing) == len(every) else f" in process {_numbers(differing)}"
            yield f"“{name}”{where}: {text}"


def _of_fault(entry: Deviation, fault: Fault | None) -> Iterator[str]:
    if fault is None:
        yield "nothing fails"
    elif entry.fault is None:
        yield f"expected {entry.seen}, observed fault: kind {fault.kind}"
    else:
        yield from (f"fault: {_in_words(one)}" for one in entry.fault.differences(fault))


def _nearest(patterns: Patterns, step: Step | None, failed: Sequence[Finding]) -> list[Difference]:
    """Return the differences of the pattern that has the fewest."""
    return min((list(one.differences(step, failed)) for one in patterns), key=len)


def _in_words(one: Difference) -> str:
    observed = "nothing" if one.missing else _shown(one.observed)
    return f"{_path(one.path)}: expected {_shown(one.expected)}, observed {observed}"


def _path(parts: Iterable[str | int]) -> str:
    """Return a path of keys and positions, as in `noted."donated deleted"[0]`."""
    text = ""
    for one in parts:
        if isinstance(one, int):
            text += f"[{one}]"
        else:
            key = one if re.fullmatch(r"[\w-]+", one) else json.dumps(one, ensure_ascii=False)
            text += f".{key}" if text else key
    return text


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"'{shortened(value, MOST_OF_A_VALUE)}'"
    return shortened(json.dumps(value, ensure_ascii=False, default=str), MOST_OF_A_VALUE)


def _any_of(patterns: Patterns) -> str:
    return shortened(" or ".join(map(str, patterns)), MOST_OF_A_VALUE)


def _numbers(some: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(some))) or "none"
