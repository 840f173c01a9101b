"""The small site that the browser's tests open: every kind of page, with the catalogue's causes.

Causes and statements are the real ones, so that what the search finds first is what a reader of
the published site finds first; the cells are made up, each kind of ending once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from records import (
    FIRST,
    Record,
    cell,
    clause,
    deviation,
    fault,
    leaf,
    observation,
    raised,
    returned,
    sample_step,
    target,
    timing,
    write,
)
from sample_results import sample

from conformance.catalogue.causes import load_causes
from conformance.catalogue.claims import load_claims
from harness.results.recorder import cause_record, claim_records
from reports.store.results import Results, load

WITH_LEGACY = ("0.9.0", "0.9.2")
VERSIONS = (*WITH_LEGACY, "0.10.0", "0.12.0.1")
STATEMENTS = 25  # of the catalogue's, in its order: pages stay small
COPY_ARRAYS = (
    "INVALID_ARGUMENT: CopyArrays only supports destination device list of the same size as the "
    "array device lists."
)
DEVICES = (
    "Received incompatible devices for jitted computation. Got argument args[0] of step with shape "
    "float32[8,4] and device ids [0] on platform CPU and explicit output sharding with device ids "
    "[0, 1] on platform CPU"
)
# How many programs stand behind a cause decides which of several is found first.
PROGRAMS = {
    "index-replicates-the-row": 4,
    "nested-pmap-refused": 3,
    "donated-copy-original-kept": 3,
    "using-an-output-raises-copy-arrays": 12,  # of x[0] too, but not first of all
}
# Clauses that pages about one question are made of: transformations, gradients, plain jit.
ASKED = (
    "silences.of-map.jit",
    "multi_controller.map.jit.shard",
    "rewriting.gradients.own.stacked",
    "rewriting.gradients.own.unmapped",
    "idioms.training.pmean",
)
PLAIN = "idioms.jit.descent"
MANY = 100  # clauses of one section: more than a page of its table holds
MOVED = {"collectives": {"all-reduce": 1}, "bytes": 48, "result": 48, "array": 384}


def browsed(folder: Path) -> Results:
    """The results of the site."""
    return load([write(folder / "browsed.jsonl", records())])


def records() -> Iterator[Record]:
    """Every kind of ending, message and figure, in four versions, on top of the sample."""
    yield from sample()
    claims = load_claims()
    yield from (to_builtins(one) for one in islice(claim_records(claims), STATEMENTS))
    yield from (to_builtins(cause_record(one)) for one in load_causes().values())
    ids = (
        "errors.devices",
        "errors.indexed",
        "errors.dies",
        "donation.peak",
        "indexing.integer.zero",
    )
    yield from (clause(id, claim=next(iter(claims.claims)), topologies=["4x2"]) for id in ids)
    for slug, programs in PROGRAMS.items():
        yield from (clause(f"{slug}.{n}", cause=slug) for n in range(programs))
    yield clause("errors.devices.put", fixes="errors.devices", topologies=["4x2"])
    yield from (clause(id, topologies=["1x8", "4x2"]) for id in (*ASKED, PLAIN))
    yield from (clause(f"outputs.many.{n}", topologies=["1x8", "4x2"]) for n in range(MANY))
    for jax in VERSIONS:
        yield target(jax)
        for topology in ("1x8", "4x2"):
            yield cell(PLAIN, implementation="jax", target=f"jax=={jax}", topology=topology)
        for implementation in ("legacy_pmap", "new_pmap"):
            if implementation == "legacy_pmap" and jax not in WITH_LEGACY:
                continue
            yield from cells(implementation=implementation, target=f"jax=={jax}")


def cells(**where: Any) -> Iterator[Record]:
    """Yield one implementation's cells in one version."""
    fails = where["implementation"] == "new_pmap"

    def seen(*steps: Record) -> list[Record]:
        return [observation(*steps, process=process) for process in range(2)]

    def known(id: str, cause: str, *steps: Record) -> Record:
        entry = deviation(cause=cause)
        return cell(id, "known deviation", observations=seen(*steps), deviation=entry, **where)

    if fails:
        yield known("errors.devices", "argument-elsewhere-refused", raised(message=DEVICES))
        yield known(
            "errors.indexed",
            "using-an-output-raises-copy-arrays",
            raised(type="JaxRuntimeError", module="jax.errors", message=COPY_ARRAYS),
        )
        killed = fault("crashed")
        killed["processes"][0]["signal"] = "SIGABRT"
        yield cell("errors.dies", "crashed", fault=killed, observations=[], **where)
    else:
        yield cell("errors.devices", observations=seen(sample_step()), **where)
    moved = MOVED if fails else MOVED | {"collectives": {}, "bytes": 0}
    yield cell(
        "indexing.integer.zero", observations=seen(sample_step(extra={"moved": moved})), **where
    )
    note = {"what": "a map's own output", "multiple": 2.0 if fails else 1.0}
    yield cell("donation.peak", observations=seen(sample_step(extra={"memory": note})), **where)
    yield cell("errors.devices.put", observations=seen(sample_step()), **where)
    for id in ASKED:
        for topology in ("1x8", "4x2"):
            gradient = returned(leaf([[1.0], [2.0]]), name=FIRST)
            yield cell(id, observations=seen(gradient), topology=topology, **where)
    ratio = {"median": 2.0, "low": 1.5, "high": 3.0, "blocks": 3, "rounds": 20, "says": "2 times"}
    for topology in ("1x8", "4x2"):
        yield timing(
            "indexing.integer.zero",
            timing="timing.index.64kib",
            topology=topology,
            ratios=[ratio | {"to": to} for to in ("local shard", "legacy pmap of jax==0.9.0")],
            **where,
        )
