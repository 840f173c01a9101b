"""Runs of a user's function, as plain JSON (`harness.usercode.observing.Observed.record`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.model.records import Cell, Fault, FaultProcess
from conformance.model.verdicts import Verdict

Json = Mapping[str, Any]

FIRST_CALL, THIRD_CALL, TIMED = "first call", "third call", "timed calls"
CALLS = (FIRST_CALL, "second call", THIRD_CALL)
PREPARE = "import and inputs"
OUTSIDE = "outside any step"  # of inputs that no call could be given
SECONDS = "seconds"
KINDS = {"legacy_pmap": "legacy pmap", "new_pmap": "new pmap"}  # of the maps that it makes


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


def place_of(run: Json) -> dict[str, Any]:
    """Return what identifies a run."""
    names = ("label", "implementation", "jax", "topology", "target", "missing")
    return {name: run[name] for name in names}


def title_of(run: Json) -> str:
    """Return what identifies a run, for a reader."""
    label = f"{run['label']}, " if run["label"] else ""
    version = f"jax {run['jax']}" if run["jax"] else str(run["target"])
    return f"{label}{run['implementation']} on {version}, {run['topology']}"


def failure_of(run: Json) -> str:
    """Return why a run called nothing: its import or its inputs failed; empty where it did."""
    for observation in run["observations"]:
        names = {step["name"] for step in observation["steps"]}
        before_calls = {PREPARE} if FIRST_CALL in names else {PREPARE, OUTSIDE}
        for step in observation["steps"]:
            if step["name"] in before_calls and step.get("exception"):
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
        observations=[_with_local_shapes(one) for one in run["observations"]],
        fault=None if fault is None else _fault(fault),
        seconds=None,
        probe_seconds=None,
        fresh=True,
        reproduce="",
    )


def _with_local_shapes(observation: Json) -> Json:
    """Return an observation in which large arrays have the shape of the process's own rows."""
    return {**observation, "steps": [_sized(step) for step in observation["steps"]]}


def _sized(step: Json) -> Json:
    samples, value = noted(step, "samples"), step.get("value")
    if not value or len(samples) != len(value["leaves"]):
        return step
    leaves = [
        leaf if sample is None else {**leaf, "local_shape": sample["local_shape"]}
        for leaf, sample in zip(value["leaves"], samples, strict=True)
    ]
    return {**step, "value": {**value, "leaves": leaves}}


def _fault(record: Json) -> Fault:
    some = tuple(FaultProcess(**one) for one in record["processes"])
    return Fault(record["kind"], record["detail"], some)


def other_kinds(run: Json) -> list[str]:
    """Return the kinds of pmap that ran in place of the one that was asked for.

    They are read off the maps that were made, as the user's code may select another one by itself.
    """
    asked = KINDS.get(run["implementation"])
    made = {kind for step in steps_named(run, FIRST_CALL) for kind in noted(step, "maps")}
    return sorted((made & {*KINDS.values()}) - {asked}) if asked else []


def steps_named(run: Json, name: str) -> list[Json]:
    """Return the step of a name of each process, in order; processes without it are left out."""
    return [s for o in run["observations"] for s in o["steps"] if s["name"] == name]


def noted(step: Json, key: str) -> Sequence[Any]:
    """Return what a step noted under a key, several things; nothing where it did not."""
    found: Sequence[Any] = (step.get("extra") or {}).get(key) or ()
    return found


def seconds_of(run: Json) -> list[float]:
    """Return the seconds of the timed calls, of each call the slowest process's."""
    some = [noted(step, SECONDS) for step in steps_named(run, TIMED)]
    return [max(each) for each in zip(*some, strict=False)]
