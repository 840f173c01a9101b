"""Steps, findings and cells as results files hold them, each in as few words as a test needs."""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.model.records import Cell
from reports.analysis.effects.digest import Digest, digest

BARE = {
    "clause": "errors.a",
    "implementation": "new_pmap",
    "target": "jax==0.9.0",
    "topology": "1x8",
    "reason": "",
    "deviation": None,
    "seconds": 0.1,
    "probe_seconds": 0.1,
    "fresh": False,
    "reproduce": "pytest",
}


def seen(part: dict[str, Any]) -> Digest:
    return digest(msgspec.convert(BARE | part, Cell))


def step(name: str = "first call", **other: Any) -> dict[str, Any]:
    return {"name": name, "outcome": "returned"} | other


def leaf(values: list[Any], **other: Any) -> dict[str, Any]:
    return {
        "type": "ArrayImpl",
        "shape": [len(values)],
        "local_shape": [len(values)],
        "dtype": "float32",
        "values": values,
        "committed": True,
        "sharding": {"devices": [0, 1], "memory_kind": "device"},
    } | other


def returned(*values: Any, name: str = "first call", **other: Any) -> dict[str, Any]:
    return step(name, value={"leaves": [leaf([*values], **other)]})


def raised(error: str, message: str, name: str = "first call") -> dict[str, Any]:
    return step(name, outcome="raised", exception={"type": error, "message": message})


def finding(name: str, saw: str, code: str = "") -> dict[str, Any]:
    return {
        "step": name,
        "process": 0,
        "holds": False,
        "expected": "the right thing",
        "saw": saw,
        "code": code,
    }


def cell(*steps: dict[str, Any], verdict: str = "conforms", **other: Any) -> Digest:
    part = {"findings": [], "fault": None, "observations": [{"process": 0, "steps": [*steps]}]}
    return seen(part | {"verdict": verdict} | other)


def died(kind: str, signal: str | None = None) -> Digest:
    process = {
        "process": 0,
        "state": "",
        "signal": signal,
        "exit": None,
        "stack": None,
        "log": None,
    }
    fault = {"kind": kind, "detail": f"it {kind}; a stack", "processes": [process]}
    return cell(verdict=kind, fault=fault, observations=[])
