"""Digests of cells, from as many facts as a test needs."""

from __future__ import annotations

from typing import Any

import msgspec
from records import Record, cell, fault, fault_process

from conformance.model.records import Cell
from reports.analysis.effects.digest import Digest, digest


def digested(part: Record) -> Digest:
    """Return the digest of a cell with these fields."""
    record = cell("errors.a", "not run", topology="1x8") | part
    return digest(msgspec.convert(record, Cell))


def digest_of(
    *steps: Record, verdict: str = "conforms", jax: str = "0.12.0.1", **other: Any
) -> Digest:
    """Return the digest of a cell whose one process did these steps."""
    seen = [{"process": 0, "jax": jax, "steps": [*steps]}]
    return digested({"verdict": verdict, "observations": seen} | other)


def died(kind: str, signal: str | None = None) -> Digest:
    """Return the digest of a cell whose one process crashed or hung."""
    first = fault_process(signal=signal)
    how = fault(kind, detail=f"it {kind}; a stack", processes=[first])
    return digest_of(verdict=kind, fault=how, observations=[])
