"""Results of a few programs on two sides: legacy pmap on 0.8.0 and new pmap on 0.9.0."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from records import (
    Record,
    cell,
    claim,
    clause,
    deviation,
    observation,
    raised,
    returned,
    target,
    write,
)

from reports.analysis.effects.changed import Upgrade
from reports.analysis.effects.pairs import Effects, side
from reports.analysis.effects.upgrade import upgrade
from reports.store.results import Results, load

OLD, NEW = "jax==0.8.0", "jax==0.9.0"
FROM, TO = "legacy_pmap@0.8.0", "new_pmap@0.9.0"
EVERYWHERE = {"legacy_pmap": "returns it", "new_pmap": "returns it", "shard_map": "returns it"}
HEAD = [target("0.8.0"), target("0.9.0"), claim("migrate-pmap.errors")]


def ran(clause: str, side: str, *steps: Record, topology: str = "1x8", **other: Any) -> Record:
    """A cell of one side; it conforms unless told otherwise."""
    implementation, jax = side.split("@")
    return cell(
        clause,
        other.pop("verdict", "conforms"),
        **{
            "implementation": implementation,
            "target": f"jax=={jax}",
            "topology": topology,
            "findings": [],
            "observations": [observation(*steps)],
        }
        | other,
    )


def program(id: str, **other: Any) -> Record:
    return clause(id, **{"expected": EVERYWHERE} | other)


def read(*records: Record) -> Results:
    with tempfile.TemporaryDirectory() as folder:
        return load([write(Path(folder) / "x.jsonl", [*HEAD, *records])])


def made(*records: Record) -> Upgrade:
    results = read(*records)
    return upgrade(Effects(results), side(results, FROM, "--from"), side(results, TO, "--to"))


FINE = returned([1.0])
FAILS = raised("ValueError", "no")


def changed(id: str, new: Record, topology: str = "1x8", **other: Any) -> list[Record]:
    """A program that returned and does now what `new` says."""
    return [
        program(id, **other),
        ran(id, FROM, FINE, topology=topology),
        ran(id, TO, new, topology=topology),
    ]


def known(id: str, slug: str, new: Record, topology: str = "1x8") -> list[Record]:
    """A program that deviates for a cause."""
    entry = deviation(cause=slug)
    return [
        program(id),
        ran(id, FROM, FINE, topology=topology),
        ran(id, TO, new, topology=topology, verdict="known deviation", deviation=entry),
    ]
