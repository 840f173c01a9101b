"""Records as results files hold them, and observations as workers send them.

Each builder writes a good record out by hand, not with the harness, so that the format is tested
from both sides. A test states only in what its record differs: `other` replaces fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.spec.containers import flattened
from conformance.spec.exceptions import expected_bases
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import to_json
from conformance.spec.texts import described
from conformance.spec.topology import Place, Topology

Record = dict[str, Any]

JAX = "0.9.0"
TOPOLOGY = Topology(2, 2)
CALL = "a call"  # of a probe that makes but one
FIRST, SECOND = "first call", "second call"
SAMPLE_PROCESSES = 4  # of a cell's topology, unless a test replaces it
SILENT = ("not run", "not applicable", "removed")  # verdicts of cells without observations

# What a good run of each implementation leaves as its witness.
WITNESS: Mapping[str, Record] = {
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


def leaf(array: Any, **other: Any) -> Record:
    """Return the record of an array; a list of numbers is one of float32."""
    array = np.asarray(array, np.float32 if isinstance(array, list) else None)
    return {
        "path": "",
        "type": "ArrayImpl",
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "values": to_json(array),
        "local_shape": list(array.shape),
        "weak_type": False,
        "committed": True,
        "sharding": {
            "type": "NamedSharding",
            "spec": ["i"],
            "mesh": {"i": 2},
            "devices": [0, 1],
            "memory_kind": "device",
        },
    } | other


def step(name: str = CALL, **other: Any) -> Record:
    """Return the record of a step that returned nothing."""
    return {
        "name": name,
        "outcome": "returned",
        "seconds": 0.01,
        "warnings": [],
        "logs": [],
        "extra": {},
    } | other


def returned(*leaves: Any, name: str = CALL, tree: str = "", **other: Any) -> Record:
    """Return a step that returned these arrays, or these records of leaves: one, or a list."""
    records = [one if isinstance(one, dict) else leaf(one) for one in leaves]
    several = "*" if len(leaves) == 1 else f"[{', '.join('*' * len(leaves))}]"
    value = {"tree": tree or f"PyTreeDef({several})", "leaves": records}
    return step(name, value=value, **other)


def gave(value: Any, *, name: str = CALL, **other: Any) -> Record:
    """Return a step that returned this value, in its containers."""
    leaves, tree = flattened(value)
    return returned(*leaves, name=name, tree=tree, **other)


def raised(
    type: str = "ValueError",
    message: str = "Received incompatible devices for pmapped computation",
    *,
    name: str = CALL,
    bases: Sequence[str] | None = None,
    phase: str = "lower",
    **exception: Any,
) -> Record:
    """Return a step that raised; `bases` are those of the type where it is known."""
    known = expected_bases(type) or ("Exception", "BaseException")
    raised = {
        "type": type,
        "module": "builtins",
        "bases": sorted(known if bases is None else bases),
        "phase": phase,
        "message": message,
        "frames": ["pjit.py:_resolve_and_lower"],
    }
    return step(name, outcome="raised", exception=raised | exception)


def observation(
    *steps: Record,
    process: int = 0,
    implementation: str = NEW_PMAP,
    topology: Topology = TOPOLOGY,
    **other: Any,
) -> Record:
    """Return one process's observation; without `steps`, of two calls that doubled its rows."""
    if not steps:
        rows = doubled(Place(topology, process))
        steps = returned(rows, name=FIRST), returned(rows, name=SECOND)
    return {
        "process": process,
        "processes": topology.processes,
        "jax": JAX,
        "implementation": implementation,
        "witness": [WITNESS.get(implementation, {"wrapper": implementation})],
        "steps": list(steps),
        "between": {"warnings": [], "logs": []},
        "seconds": 0.02,
    } | other


def observations(
    *steps: Record,
    implementation: str = NEW_PMAP,
    topology: Topology = TOPOLOGY,
    **other: Any,
) -> list[Record]:
    """Return the same from every process of the cluster, each with its own rows."""
    return [
        observation(*steps, process=p, implementation=implementation, topology=topology, **other)
        for p in range(topology.processes)
    ]


def sample_step(**other: Any) -> Record:
    """Return a first call that returned an array of 8 rows, warned, logged and communicated."""
    sharding = {
        "type": "NamedSharding",
        "spec": "('i',)",
        "devices": list(range(8)),
        "mesh": {"i": 8},
        "memory_kind": "device",
    }
    array = leaf(
        [1.0, 2.0, 3.0, "nan"], type="Array", shape=[8, 2], local_shape=[2, 2], sharding=sharding
    )
    return returned(
        array,
        **{
            "name": FIRST,
            "warnings": [{"category": "DeprecationWarning", "message": "old", "count": 2}],
            "logs": [{"logger": "jax", "level": "WARNING", "message": "slow"}],
            "extra": {"collectives": ["all-gather"]},
        }
        | other,
    )


def target(jax: str | None = JAX, **other: Any) -> Record:
    """Return the header of the target `jax==X`."""
    return {
        "kind": "target",
        "schema": 1,
        "target": f"jax=={jax}",
        "jax": jax,
        "jaxlib": jax,
        "numpy": "2.4.6",
        "python": "3.11.7",
        "platform": "cpu",
        "machine": "x86_64",
        "run": "r1",
        "started": "2026-11-21T08:00:00+00:00",
        "unavailable": None,
    } | other


def unavailable(spec: str, why: str, **other: Any) -> Record:
    """Return the header of a target that was not available."""
    nothing = dict.fromkeys(("jax", "jaxlib", "numpy", "python", "platform", "machine"))
    return target(target=spec, unavailable=why, **nothing) | other


def claim(slug: str, **other: Any) -> Record:
    """Return a claim of the migration document."""
    return {
        "kind": "claim",
        "slug": slug,
        "ref": "B1",
        "document": "migrate-pmap",
        "document_title": "Migrating to the new pmap",
        "heading": "Errors",
        "heading_hash": "sha256:" + "0123456789abcdef" * 4,
        "statement": f"What {slug} says.",
        "claim_kind": "error",
    } | other


def clause(id: str, **other: Any) -> Record:
    """Return a clause of the claim `migrate-pmap.errors`."""
    return {
        "kind": "clause",
        "clause": id,
        "section": id.split(".", 1)[0],
        "title": f"Title of {id}",
        "claim": "migrate-pmap.errors",
        "fixes": None,
        "expected": {
            LEGACY_PMAP: "returns the model's value",
            NEW_PMAP: "raises ValueError matching 'incompatible devices'",
            SHARD_MAP: "not applicable: takes no devices",
        },
        "source": "def probe(impl, cluster):\n    return impl.map(f)(x)\n",
        "module": "conformance/clauses/errors.py",
        "line": 12,
    } | other


def cause(slug: str, **other: Any) -> Record:
    """Return the record of a known issue."""
    return {
        "kind": "cause",
        "cause": slug,
        "section": "errors",
        "title": f"Title of {slug}",
        "sentence": "JAX does this, and a user feels that.",
        "cause_kind": "implementation",
        "tags": ["jax.pmap"],
        "remedies": ["errors.fix"],
        "links": ["https://example.org/1"],
        "program": "import jax\n",
        "command": "python program.py",
        "file": f"conformance/sections/errors/causes/{slug}.py",
    } | other


def shows(implementation: str, prints: str = "1", **other: Any) -> Record:
    """Return what the program of a known issue prints under an implementation."""
    return {
        "implementation": [implementation],
        "jax": "",
        "topology": ["1x8"],
        "prints": prints,
        "raises": "",
        "ends": "",
    } | other


def strength(clause: str, **other: Any) -> Record:
    """Return how many wrong observations of a clause were noticed: one of two."""
    counts = {"cells": 1, "judged": 2, "noticed": 1}
    return {"kind": "strength", "clause": clause} | counts | other


def growth(clause: str, *sent: tuple[int, int], jax: str = JAX, **other: Any) -> Record:
    """Return what an access moves on TPU slices: for each the chips, and the bytes to a chip."""
    row = 1 << 10
    return {
        "kind": "growth",
        "clause": clause,
        "text": "`x[0]` under jit",
        "implementation": SHARD_MAP,
        "target": f"jax=={jax}",
        "jax": jax,
        "libtpu": "0.0.50",
        "chip": "TPU v5",
        "row": row,
        "points": [
            {
                "slice": f"v5p:{chips}",
                "chips": chips,
                "collectives": {"all-gather": 1},
                "bytes": moved,
                "result": row,
                "array": row * chips,
            }
            for chips, moved in sent
        ],
    } | other


def timing(*illustrates: str, **other: Any) -> Record:
    """Return figures of a contender under new_pmap, jax 0.9.0, 4x2."""
    return {
        "kind": "timing",
        "timing": "timing.index.4kib",
        "contender": "index",
        "implementation": NEW_PMAP,
        "target": f"jax=={JAX}",
        "topology": "4x2",
        "illustrates": list(illustrates),
        "seconds": {"median": 0.00158, "low": 0.0014, "high": 0.002},
        "rounds": 120,
        "ratios": [
            {
                "to": "local shard",
                "median": 28.0,
                "low": 25.0,
                "high": 31.0,
                "blocks": 6,
                "rounds": 20,
                "says": "28 times local shard (25 to 31 times, 6 blocks of 20 rounds)",
            }
        ],
        "failed": None,
    } | other


def cell(clause: str, verdict: str = "conforms", **other: Any) -> Record:
    """Return a cell under new_pmap, jax 0.9.0, 4x2; observed by its processes if it ran."""
    silent = verdict in SILENT
    steps = sample_step(), raised(name=SECOND)
    seen = [
        observation(*steps, process=process, topology=Topology(SAMPLE_PROCESSES, 2))
        for process in range(0 if silent else SAMPLE_PROCESSES)
    ]
    holds = verdict == "conforms"
    return {
        "kind": "cell",
        "clause": clause,
        "implementation": NEW_PMAP,
        "target": f"jax=={JAX}",
        "topology": f"{SAMPLE_PROCESSES}x2",
        "verdict": verdict,
        "reason": f"the reason of {verdict}",
        "findings": [] if silent else [finding(holds=holds, step=FIRST)],
        "deviation": deviation() if verdict == "known deviation" else None,
        "observations": seen,
        "fault": fault(verdict) if verdict in ("crashed", "hung") else None,
        "seconds": None if silent else 0.12,
        "probe_seconds": None if silent else 0.05,
        "fresh": False,
        "reproduce": f"pytest -k {clause}",
    } | other


def finding(
    saw: str = "raised ValueError", code: str = "", *, holds: bool = False, **other: Any
) -> Record:
    """Return what was found in process 0; as expected if it `holds`."""
    return {
        "step": CALL,
        "process": 0,
        "holds": holds,
        "expected": "returns float32[8,4]",
        "saw": "float32[8,4]" if holds else saw,
        "code": code,
    } | other


def deviation(**other: Any) -> Record:
    """Return a known deviation with a link that may be followed."""
    return {
        "observed": "returns instead of raising",
        "why": "the check was removed",
        "link": "https://example.org/issues/1",
        "kind": "implementation",
        "review": "2027-03-01",
        "jax": ">=0.8",
    } | other


def fault(kind: str, **other: Any) -> Record:
    """Return that process 0 crashed or hung, and process 1 lost its peer."""
    first = fault_process(
        state=kind,
        signal="SIGSEGV" if kind == "crashed" else None,
        stack='File "probe.py", line 3 in probe',
        log="Fatal Python error",
    )
    return {
        "kind": kind,
        "detail": f"process 0 {kind} in step 'first call'",
        "processes": [first, fault_process(process=1, state="lost its peer", exit=1)],
    } | other


def fault_process(**known: Any) -> Record:
    """Return one process of a fault; what is not `known` is null."""
    unknown = dict.fromkeys(("signal", "exit", "stack", "log"))
    return {"process": 0, "state": ""} | unknown | known


def write(path: Path, records: Iterable[Record]) -> Path:
    """Write the records as a results file; return its path."""
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path
