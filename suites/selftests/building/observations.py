"""Builds clauses and what workers send of them, for tests that need no JAX process.

Observations are made as the worker's JSON and read by `judging.observation.parse`, so what is
tested is what arrives, and a test states only in what its observation differs from a good one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.model.verdicts import Verdict
from conformance.spec.clause import Clause
from conformance.spec.containers import flattened
from conformance.spec.exceptions import expected_bases
from conformance.spec.expected import Expectation
from conformance.spec.faults import Fault, Whereabouts
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Observation, parse, to_json
from conformance.spec.texts import described
from conformance.spec.topology import Place, Topology

Json = dict[str, Any]

JAX = "0.9.0"
TOPOLOGY = Topology(2, 2)
FIRST, SECOND = "first call", "second call"
CALL = "a call"  # of a probe that makes but one

# What a good run of each implementation leaves as its witness.
WITNESS: Mapping[str, Json] = {
    LEGACY_PMAP: {"wrapper": "legacy pmap", "outputs": ["PmapSharding"], "raised": False},
    NEW_PMAP: {
        "wrapper": "new pmap",
        "outputs": ["NamedSharding"],
        "traced": ["shard_map"],
        "raised": False,
    },
    SHARD_MAP: {
        "wrapper": "jit(shard_map)",
        "outputs": ["NamedSharding"],
        "traced": ["shard_map"],
        "raised": False,
    },
}


@described("the rows doubled")
def doubled(place: Place) -> Any:
    return place.rows() * 2


def leaf(array: Any, **other: Any) -> Json:
    """The record of an array; `other` replaces single facts."""
    array = np.asarray(array)
    return {
        "path": "",
        "type": "ArrayImpl",
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "values": to_json(array),
        "local_shape": list(array.shape),
        "weak_type": False,
        "committed": True,
        "sharding": {"type": "NamedSharding", "spec": ["i"], "mesh": {"i": 2}, "devices": [0, 1]},
    } | other


def returned(*leaves: Any, name: str = CALL, tree: str = "", **other: Any) -> Json:
    """A step that returned these arrays, or these records of leaves: one, or a list of several."""
    records = [one if isinstance(one, dict) else leaf(one) for one in leaves]
    several = "*" if len(leaves) == 1 else f"[{', '.join('*' * len(leaves))}]"
    value = {"tree": tree or f"PyTreeDef({several})", "leaves": records}
    return {
        "name": name,
        "outcome": "returned",
        "value": value,
        "seconds": 0.01,
        "warnings": [],
        "logs": [],
        "extra": {},
    } | other


def gave(value: Any, *, name: str = CALL, **other: Any) -> Json:
    """A step that returned this value, in its containers."""
    leaves, tree = flattened(value)
    return returned(*leaves, name=name, tree=tree, **other)


def raised(
    type: str = "ValueError",
    message: str = "Received incompatible devices for pmapped computation",
    *,
    name: str = CALL,
    bases: Sequence[str] | None = None,
    phase: str = "lower",
    frames: Sequence[str] = ("pjit.py:_resolve_and_lower",),
) -> Json:
    """A step that raised, an exception with the base classes of its type if they are known."""
    known = expected_bases(type) or ("Exception", "BaseException")
    exception = {
        "type": type,
        "module": "builtins",
        "bases": sorted(known if bases is None else bases),
        "phase": phase,
        "message": message,
        "frames": list(frames),
    }
    return {
        "name": name,
        "outcome": "raised",
        "exception": exception,
        "seconds": 0.01,
        "warnings": [],
        "logs": [],
        "extra": {},
    }


def observation(
    *steps: Json,
    process: int = 0,
    implementation: str = NEW_PMAP,
    topology: Topology = TOPOLOGY,
    **other: Any,
) -> Json:
    """Return one process's observation: two calls that doubled its rows, unless `steps` are
    given.
    """
    rows = doubled(Place(topology, process))
    good = (returned(rows, name=FIRST), returned(rows, name=SECOND))
    return {
        "process": process,
        "processes": topology.processes,
        "jax": JAX,
        "implementation": implementation,
        "witness": [WITNESS[implementation]],
        "steps": list(steps or good),
        "seconds": 0.02,
    } | other


def observations(
    *steps: Json,
    implementation: str = NEW_PMAP,
    topology: Topology = TOPOLOGY,
    **other: Any,
) -> list[Json]:
    """The same from every process of the cluster, each with its own rows."""
    return [
        observation(*steps, process=p, implementation=implementation, topology=topology, **other)
        for p in range(topology.processes)
    ]


def received(record: Json) -> Observation:
    """The observation after its way through the connection."""
    return parse(json.loads(json.dumps(record, allow_nan=False)))


def clause_of(
    expect: Expectation | Mapping[str, Expectation], id: str = "errors.sample", **other: Any
) -> Clause:
    """A clause that expects the same of every implementation, or what the mapping says."""
    if not isinstance(expect, Mapping):
        expect = dict.fromkeys(IMPLEMENTATIONS, expect)
    claim = other.pop("claim", "migrate-pmap.incompatible-devices")
    return Clause(id=id, claim=claim, probe=sample_probe, expect=expect, **other)


def sample_probe(impl: Any, cluster: Any) -> None:
    """The rows are doubled."""


def crashed(step: str, *mapped: str, signal: str = "SIGSEGV") -> Fault:
    """The first process was killed in this step, if any, after these maps were made."""
    where = f"in step “{step}”" if step else "before any step"
    detail = f"process 0 was killed by {signal} {where}"
    return Fault(Verdict.CRASHED, detail, mapped, (Whereabouts(0, (), step, signal),))


def hung(step: str, *mapped: str) -> Fault:
    """The first process did not come back from this step, after these maps were made."""
    detail = f"no answer within 6 s from process 0; in step “{step}”"
    return Fault(Verdict.HUNG, detail, mapped, (Whereabouts(0, (), step),))
