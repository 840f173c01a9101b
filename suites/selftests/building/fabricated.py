"""Judges fabricated observations with the real clauses and the real deviation entries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from observations import observation, received

from conformance.catalogue import loading
from conformance.judging.deviations import load_all, matching
from conformance.judging.judge import judge
from conformance.model.verdicts import Verdict
from conformance.spec.topology import Place, Topology

NEWEST = "0.12.0.1"

catalogue = functools.cache(loading.load)
entries = functools.cache(load_all)


def verdict_of(
    id: str, implementation: str, topology: Topology, steps: Callable[[Place], list[Any]]
) -> str:
    """Return the verdict on processes of the newest JAX that recorded these steps."""
    clause = catalogue().clauses[id]
    found = matching(entries(), id, implementation, NEWEST, "cpu", str(topology))
    places = [Place(topology, process) for process in range(topology.processes)]
    seen = [
        observation(
            *steps(place),
            process=place.process,
            implementation=implementation,
            topology=topology,
            jax=NEWEST,
        )
        for place in places
    ]
    records = [received(one) for one in seen]
    return judge(clause, implementation, topology, NEWEST, records, None, found).verdict


def earned(
    id: str, implementation: str, topology: Topology, steps: Callable[[Place], list[Any]]
) -> bool:
    """Return whether the cell would be green or excused."""
    return verdict_of(id, implementation, topology, steps) in (
        Verdict.CONFORMS,
        Verdict.KNOWN_DEVIATION,
    )
