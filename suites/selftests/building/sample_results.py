"""Builds small results files for the tests of `reports`: every verdict once, and hostile text.

The records are written out by hand, not by the harness, so that the format is tested from both
sides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]

MARKUP = "<script>alert"
HOSTILE = f"{MARKUP}('&\"')</script>\x1b[31m\ud800"
IMPLEMENTATIONS = ("legacy_pmap", "new_pmap", "shard_map")


def target(jax: str | None = "0.9.0", **other: Any) -> Record:
    """A header; `jax==X` unless told otherwise."""
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
    """The header of a target that could not be had."""
    nothing = dict.fromkeys(("jax", "jaxlib", "numpy", "python", "platform", "machine"))
    return target(target=spec, unavailable=why, **nothing) | other


def claim(slug: str, **other: Any) -> Record:
    """A claim of the migration document."""
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
    """A clause of the claim `migrate-pmap.errors`."""
    return {
        "kind": "clause",
        "clause": id,
        "section": id.split(".", 1)[0],
        "title": f"Title of {id}",
        "claim": "migrate-pmap.errors",
        "fixes": None,
        "expected": {
            "legacy_pmap": "returns the model's value",
            "new_pmap": "raises ValueError matching 'incompatible devices'",
            "shard_map": "not applicable: takes no devices",
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


def timing(*illustrates: str, **other: Any) -> Record:
    """Figures of a contender under new_pmap, jax 0.9.0, 4x2."""
    return {
        "kind": "timing",
        "timing": "timing.index.4kib",
        "contender": "index",
        "implementation": "new_pmap",
        "target": "jax==0.9.0",
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
    """A cell under new_pmap, jax 0.9.0, 4x2; observed by four processes if it ran."""
    silent = verdict in ("not run", "not applicable", "removed")
    return {
        "kind": "cell",
        "clause": clause,
        "implementation": "new_pmap",
        "target": "jax==0.9.0",
        "topology": "4x2",
        "verdict": verdict,
        "reason": f"the reason of {verdict}",
        "findings": [] if silent else [finding(verdict == "conforms")],
        "deviation": deviation() if verdict == "known deviation" else None,
        "observations": [] if silent else [observation(p) for p in range(4)],
        "fault": fault(verdict) if verdict in ("crashed", "hung") else None,
        "seconds": None if silent else 0.12,
        "probe_seconds": None if silent else 0.05,
        "fresh": False,
        "reproduce": f"pytest -k {clause}",
    } | other


def finding(holds: bool, **other: Any) -> Record:
    """Return the record of a finding on the first call in process 1."""
    return {
        "step": "first call",
        "process": 1,
        "holds": holds,
        "expected": "returns float32[8,4]",
        "saw": "float32[8,4]" if holds else "raised ValueError",
    } | other


def deviation(**other: Any) -> Record:
    """A known deviation with a link that may be followed."""
    return {
        "observed": "returns instead of raising",
        "why": "the check was removed",
        "link": "https://example.org/issues/1",
        "kind": "implementation",
        "review": "2027-03-01",
        "jax": ">=0.8",
    } | other


def fault(kind: str) -> Record:
    """Process 0 died or hung, process 1 lost its peer."""
    return {
        "kind": kind,
        "detail": f"process 0 {kind} in step 'first call'",
        "processes": [
            {
                "process": 0,
                "state": kind,
                "signal": "SIGSEGV" if kind == "crashed" else None,
                "exit": None,
                "stack": 'File "probe.py", line 3 in probe',
                "log": "Fatal Python error",
            },
            {
                "process": 1,
                "state": "lost its peer",
                "signal": None,
                "exit": 1,
                "stack": None,
                "log": None,
            },
        ],
    }


def observation(process: int, **other: Any) -> Record:
    """One step that returned an array and one that raised."""
    return {
        "process": process,
        "jax": "0.9.0",
        "implementation": "new_pmap",
        "witness": [
            {
                "wrapper": "PjitFunction",
                "outputs": ["NamedSharding"],
                "traced": ["shard_map"],
                "raised": False,
            }
        ],
        "steps": [returned(), raised()],
        "seconds": 0.05 + process,
    } | other


def returned(**other: Any) -> Record:
    """A step that returned one array."""
    return {
        "name": "first call",
        "outcome": "returned",
        "value": {
            "tree": "PyTreeDef(*)",
            "leaves": [
                {
                    "path": "",
                    "type": "Array",
                    "shape": [8, 2],
                    "dtype": "float32",
                    "weak_type": False,
                    "committed": True,
                    "sharding": {
                        "type": "NamedSharding",
                        "spec": "('i',)",
                        "devices": [0, 1, 2, 3, 4, 5, 6, 7],
                        "mesh": {"i": 8},
                        "memory_kind": "device",
                    },
                    "values": [1.0, 2.0, 3.0, "nan"],
                    "local_shape": [2, 2],
                }
            ],
        },
        "exception": None,
        "seconds": 0.01,
        "warnings": [{"category": "DeprecationWarning", "message": "old", "count": 2}],
        "logs": [{"logger": "jax", "level": "WARNING", "message": "slow"}],
        "extra": {"collectives": ["all-gather"]},
    } | other


def raised(**exception: Any) -> Record:
    """A step that raised."""
    return {
        "name": "second call",
        "outcome": "raised",
        "value": None,
        "exception": {
            "type": "ValueError",
            "module": "builtins",
            "bases": ["ValueError", "Exception"],
            "phase": "lower",
            "message": "Received incompatible devices",
            "frames": ["pxla.py:10 in lower"],
        }
        | exception,
        "seconds": 0.01,
        "warnings": [],
        "logs": [],
    }


VERDICT_CELLS = (
    "conforms",
    "deviates",
    "known deviation",
    "removed",
    "not applicable",
    "crashed",
    "hung",
    "flaky",
    "not run",
)


def sample() -> list[Record]:
    """One clause per verdict, a remedy, a gap, an unavailable target, hostile text everywhere."""
    ids = [f"errors.{verdict.replace(' ', '-')}" for verdict in VERDICT_CELLS]
    hostile_cell = cell(
        "errors.fix",
        "crashed",
        implementation="shard_map",
        reason=HOSTILE,
        findings=[finding(False, expected=HOSTILE, saw=HOSTILE, step=HOSTILE)],
        deviation=deviation(link="javascript:alert(1)", why=HOSTILE, observed=HOSTILE),
        fault=fault("crashed")
        | {
            "detail": HOSTILE,
            "processes": [
                {
                    "process": 0,
                    "state": HOSTILE,
                    "signal": HOSTILE,
                    "exit": None,
                    "stack": HOSTILE,
                    "log": HOSTILE,
                }
            ],
        },
        observations=[hostile_observation()],
        reproduce=HOSTILE,
    )
    return [
        target(),
        unavailable("jax==0.12.0.1", "no Python of 3.12 or newer"),
        claim("migrate-pmap.errors"),
        claim("migrate-pmap.gap", ref="C9", heading="Performance", statement=f"Gap {HOSTILE}"),
        cause("a-cause"),
        *(clause(id) for id in ids),
        clause("errors.fix", fixes="errors.deviates", title=HOSTILE, source=HOSTILE),
        *(cell(id, verdict) for id, verdict in zip(ids, VERDICT_CELLS, strict=True)),
        hostile_cell,
        cell("errors.conforms", implementation="legacy_pmap", topology="1x8"),
    ]


def hostile_observation() -> Record:
    """An observation whose every text is hostile, with keys that no report knows."""
    leaf = returned()["value"]["leaves"][0] | {
        "path": HOSTILE,
        "type": HOSTILE,
        "dtype": HOSTILE,
        "sharding": {"type": HOSTILE, HOSTILE: HOSTILE, "mesh": {HOSTILE: 2}},
        "values": [HOSTILE] * 40,
        HOSTILE: HOSTILE,
    }
    first = returned(
        name=HOSTILE,
        value={"tree": HOSTILE, "leaves": [leaf, leaf]},
        warnings=[{"category": HOSTILE, "message": HOSTILE, "count": 1}],
        logs=[{"logger": HOSTILE, "level": HOSTILE, "message": HOSTILE}],
        extra={HOSTILE: HOSTILE},
    )
    second = raised(type=HOSTILE, module=HOSTILE, phase=HOSTILE, message=HOSTILE, frames=[HOSTILE])
    return observation(
        0,
        jax=HOSTILE,
        implementation=HOSTILE,
        witness=[{"wrapper": HOSTILE, "outputs": [HOSTILE]}],
        steps=[first, second],
    ) | {HOSTILE: HOSTILE}


def write(path: Path, records: Iterable[Record]) -> Path:
    """The records as a results file."""
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path
