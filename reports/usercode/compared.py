"""One run of a user's function compared with another, field by field, and what explains it.

A run is plain JSON (`harness.usercode.observing.Observed.record`). The fields and their words are
those by which implementations are compared (`reports.comparing.fields`); costs are added here.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.comparing.fields import (
    COLLECTIVES,
    FAULT,
    VALUES,
    Difference,
    apart_by_rounding,
    compare_cells,
)
from reports.reading.records import Cell, Fault, FaultProcess
from reports.reading.verdicts import Verdict
from reports.usercode.values import describe_values

Json = Mapping[str, Any]
Amount = Callable[[Json], int | None]

BYTES, MEMORY, TIME, RETRACES = "collective bytes", "compiled memory", "time per call", "retraces"
SLOWER = 1.5  # times: below it, and its inverse, a ratio is noise on a busy machine
LEAST_MEMORY = 1024  # bytes by which programs that differ in memory are apart
COSTS = (BYTES, MEMORY, TIME, RETRACES)
FIRST_CALL, THIRD_CALL, TIMED = "first call", "third call", "timed calls"
PREPARE = "import and inputs"
SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Found:
    """One difference: in which step and field, from what to what, exactly; and what explains it.

    `cause` is the slug of a known issue, `claim` of a documented change, `says` a sentence of it;
    all empty where nothing is known. `matters` is false of what is within rounding or noise.
    """

    step: str
    field: str
    old: str
    new: str
    seen: str
    matters: bool = True
    cause: str = ""
    claim: str = ""
    says: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Compared:
    """A run, the run that it was compared with, and what differs.

    `missing` is why there is nothing to compare; `same` how many fields are the same.
    """

    baseline: Json
    run: Json
    found: tuple[Found, ...] = ()
    same: int = 0
    missing: str = ""

    @property
    def differs(self) -> bool:
        """Whether anything differs that matters."""
        return any(one.matters for one in self.found)

    def record(self) -> dict[str, Any]:
        """Return it as JSON, without the observations."""
        return {
            "baseline": place_of(self.baseline),
            "run": place_of(self.run),
            "missing": self.missing or None,
            "same_fields": self.same,
            "differences": [one.record() for one in self.found],
        }


def place_of(run: Json) -> dict[str, Any]:
    """Return what identifies a run."""
    names = ("label", "implementation", "jax", "topology", "target", "missing")
    return {name: run[name] for name in names}


def title_of(run: Json) -> str:
    """Return what identifies a run, for a reader."""
    label = f"{run['label']}, " if run["label"] else ""
    version = f"jax {run['jax']}" if run["jax"] else str(run["target"])
    return f"{label}{run['implementation']} on {version}, {run['topology']}"


def compare(baseline: Json, run: Json) -> Compared:
    """Compare a run with the baseline; nothing is explained yet."""
    for one in (baseline, run):
        if one["missing"]:
            return Compared(baseline, run, missing=str(one["missing"]))
    cells = compare_cells(cell_of(baseline), cell_of(run))
    found = [_found(one, baseline, run) for one in cells.differences]
    same = sum(cells.same.values())
    if not any(one.field == FAULT for one in found):
        costs = list(_costs(baseline, run))
        found += costs
    return Compared(baseline, run, tuple(found), same)


def failure_of(run: Json) -> str:
    """Return why a run called nothing: its import or its inputs failed; empty where it did."""
    for observation in run["observations"]:
        for step in observation["steps"]:
            if step["name"] == PREPARE and step.get("exception"):
                error = step["exception"]
                return f"{error['type']}: {str(error['message']).strip()}"
    return ""


def cell_of(run: Json) -> Cell:
    """Return a run as the cell of a results file, for what compares cells."""
    fault = run["fault"]
    return Cell(
        clause="",
        implementation=run["implementation"],
        target=run["target"],
        topology=run["topology"],
        verdict=Verdict.CONFORMS,
        reason="",
        findings=(),
        deviation=None,
        observations=run["observations"],
        fault=None if fault is None else _fault(fault),
        seconds=None,
        probe_seconds=None,
        fresh=True,
        reproduce="",
    )


def _fault(record: Json) -> Fault:
    some = tuple(FaultProcess(**one) for one in record["processes"])
    return Fault(record["kind"], record["detail"], some)


def _found(one: Difference, baseline: Json, run: Json) -> Found:
    seen, matters = one.seen, True
    if one.field == FAULT:
        seen = " → ".join(
            "none" if r["fault"] is None else r["fault"]["detail"] for r in (baseline, run)
        )
    elif one.field == COLLECTIVES:
        names = _communicating(run, one.step) or _communicating(baseline, one.step)
        seen = f"{seen}, in {', '.join(names)}" if names else seen
    elif one.field == VALUES:
        matters = one.new != "equal but for rounding"
        seen = describe_values(steps_named(baseline, one.step), steps_named(run, one.step)) or seen
    return Found(one.step, one.field, one.old, one.new, seen, matters)


def _communicating(run: Json, step: str) -> list[str]:
    """Return the names of the programs of a step that have collectives."""
    programs = [p for s in steps_named(run, step)[:1] for p in _noted(s, "programs")]
    return list(dict.fromkeys(p["name"] for p in programs if p["collectives"]))


def steps_named(run: Json, name: str) -> list[Json]:
    """Return the step of a name of each process, in order; processes without it are left out."""
    return [s for o in run["observations"] for s in o["steps"] if s["name"] == name]


def _costs(old: Json, new: Json) -> Iterator[Found]:
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
        pairs = zip(_noted(here, "samples"), _noted(there, "samples"), strict=False)
        leaves = (here.get("value") or {}).get("leaves", ())
        for (a, b), leaf in zip(pairs, leaves, strict=False):
            if a is None or b is None or len(a) != len(b) or a == b:
                continue
            rounded = apart_by_rounding(a, b, str(leaf.get("dtype")))
            words = "equal but for rounding" if rounded else "other values"
            seen = f"in {len(a)} sampled values of {leaf.get('path') or 'the result'}"
            yield Found(FIRST_CALL, VALUES, "values", words, seen, not rounded)
            return


def _noted(step: Json, key: str) -> Sequence[Any]:
    found: Sequence[Any] = (step.get("extra") or {}).get(key) or ()
    return found


def _amounts(old: Json, new: Json, name: str, amount: Amount, least: int) -> Iterator[Found]:
    before, after = amount(old), amount(new)
    if before is None or after is None or abs(after - before) < least:
        return
    words = "more" if after > before else "less"
    yield Found(FIRST_CALL, name, f"{before} bytes", f"{after} bytes ({words})", "per device")


def _bytes(run: Json) -> int | None:
    """Return the bytes of all collectives that the first call compiled, on one device."""
    some = [_noted(step, "programs") for step in steps_named(run, FIRST_CALL)[:1]]
    if not some or not some[0]:
        return None
    return sum(int(c["bytes"]) for one in some[0] for c in one["collectives"])


def _memory(run: Json) -> int | None:
    """Return arguments, outputs and temporaries of the largest program, in bytes on one device."""
    some = [_noted(step, "programs") for step in steps_named(run, FIRST_CALL)[:1]]
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


def seconds_of(run: Json) -> list[float]:
    """Return the seconds of the timed calls, of each call the slowest process's."""
    some = [_noted(step, SECONDS) for step in steps_named(run, TIMED)]
    return [max(each) for each in zip(*some, strict=False)]
