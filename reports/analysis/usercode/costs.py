"""What two runs of a user's function cost: bytes, memory, traces, time; and sampled values."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reports.analysis.comparing.fields import VALUES, apart_by_rounding
from reports.analysis.usercode.runs import (
    FIRST_CALL,
    THIRD_CALL,
    TIMED,
    Found,
    Json,
    noted,
    seconds_of,
    steps_named,
)

Amount = Callable[[Json], int | None]

BYTES, MEMORY, TIME, RETRACES = "collective bytes", "compiled memory", "time per call", "retraces"
COSTS = (BYTES, MEMORY, TIME, RETRACES)
SLOWER = 1.5  # times: below it, and its inverse, a ratio is noise on a busy machine
LEAST_MEMORY = 1024  # bytes by which programs that differ in memory are apart


@dataclass(frozen=True, slots=True)
class Moved:
    """A collective of a compiled program, and its bytes on one device."""

    program: str
    operation: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.operation} of {self.bytes} bytes in {self.program}"


def added_collectives(old: Json, new: Json, step: str) -> list[Moved]:
    """Return the collectives of a step that only the new run has, by operation and bytes."""
    before = Counter((one.operation, one.bytes) for one in _collectives(old, step))
    added = []
    for one in _collectives(new, step):
        key = one.operation, one.bytes
        if before[key]:
            before[key] -= 1
        else:
            added.append(one)
    return added


def _collectives(run: Json, step: str) -> list[Moved]:
    return [
        Moved(str(program["name"]), str(c["operation"]), int(c["bytes"]))
        for one in steps_named(run, step)[:1]
        for program in noted(one, "programs")
        for c in program["collectives"]
    ]


def costs(old: Json, new: Json) -> Iterator[Found]:
    """Yield the differences of two runs in samples, bytes, memory, retraces and seconds."""
    yield from _samples(old, new)
    yield from _amounts(old, new, BYTES, _bytes, 1)
    yield from _amounts(old, new, MEMORY, _memory, LEAST_MEMORY)
    yield from _retraces(old, new)
    yield from _times(old, new)


def _samples(old: Json, new: Json) -> Iterator[Found]:
    """Compare the samples of arrays that are too large to carry, of each process's first call."""
    for here, there in zip(
        steps_named(old, FIRST_CALL), steps_named(new, FIRST_CALL), strict=False
    ):
        pairs = zip(noted(here, "samples"), noted(there, "samples"), strict=False)
        leaves = (here.get("value") or {}).get("leaves", ())
        for (a, b), leaf in zip(pairs, leaves, strict=False):
            if a is None or b is None or a["local_shape"] != b["local_shape"] or a == b:
                continue
            a, b = a["values"], b["values"]
            rounded = apart_by_rounding(a, b, str(leaf.get("dtype")))
            words = "equal but for rounding" if rounded else "other values"
            seen = f"in {len(a)} sampled values of {leaf.get('path') or 'the result'}"
            yield Found(FIRST_CALL, VALUES, "values", words, seen, not rounded)
            return


def _amounts(old: Json, new: Json, name: str, amount: Amount, least: int) -> Iterator[Found]:
    before, after = amount(old), amount(new)
    if before is None or after is None or abs(after - before) < least:
        return
    words = "more" if after > before else "less"
    yield Found(
        FIRST_CALL, name, f"{before} bytes", f"{after} bytes ({words})", _where(name, old, new)
    )


def _where(name: str, old: Json, new: Json) -> str:
    """Return which collectives were added or are gone, where bytes differ."""
    if name != BYTES:
        return "per device"
    added, gone = (added_collectives(*pair, FIRST_CALL) for pair in ((old, new), (new, old)))
    some = [f"new: {one}" for one in added] + [f"gone: {one}" for one in gone]
    return "; ".join(some) or "per device"


def _bytes(run: Json) -> int | None:
    """Return the bytes of all collectives that the first call compiled, on one device."""
    some = [noted(step, "programs") for step in steps_named(run, FIRST_CALL)[:1]]
    if not some or not some[0]:
        return None
    return sum(int(c["bytes"]) for one in some[0] for c in one["collectives"])


def _memory(run: Json) -> int | None:
    """Return arguments, outputs and temporaries of the largest program, in bytes on one device."""
    some = [noted(step, "programs") for step in steps_named(run, FIRST_CALL)[:1]]
    sizes = [one["memory"] for programs in some for one in programs if one.get("memory")]
    totals = (m["argument"] + m["output"] + m["temp"] - m["alias"] for m in sizes)
    return max(totals, default=None)


def _retraces(old: Json, new: Json) -> Iterator[Found]:
    """Compare how often the body was traced again in the third call, where nothing is new."""
    before, after = (_traced(one) for one in (old, new))
    if before != after and None not in (before, after):
        yield Found(THIRD_CALL, RETRACES, f"{before} traces", f"{after} traces", "")


def _traced(run: Json) -> int | None:
    found = [(step.get("extra") or {}).get("again") for step in steps_named(run, THIRD_CALL)]
    return max((one["traced"] for one in found if one), default=None)


def _times(old: Json, new: Json) -> Iterator[Found]:
    before, after = (seconds_of(one) for one in (old, new))
    if not before or not after:
        return
    ratios = sorted(a / statistics.median(before) for a in after)
    median = statistics.median(after) / statistics.median(before)
    low, high = ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]
    outside = low > SLOWER or high < 1 / SLOWER
    old_ms, new_ms = (f"{statistics.median(one) * 1e3:.3g} ms" for one in (before, after))
    seen = f"{median:.2f} times (quartiles {low:.2f} to {high:.2f})"
    # A time proves nothing by itself: it is shown, and never makes a run differ.
    if outside:
        yield Found(TIMED, TIME, old_ms, new_ms, seen, matters=False)
