"""What the new pmap is made of: the sharding of its outputs, and what it is traced to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.topology import Place
from conformance.judging.columns import unless_legacy
from conformance.judging.expectation import Expectation, every, noted, returns, sharded
from conformance.probing.bodies import double, doubled


def outputs_with(sharding: str) -> Expectation:
    """The rows doubled, in an array whose sharding is of this type."""
    return every(
        sharded(f"is a {sharding}", lambda place, s: s["type"] == sharding),
        returns(doubled(2), text="the rows, doubled"),
    )


@clause(
    "switches.sharding-of-outputs",
    claim="migrate-pmap.pmap-sharding-legacy",
    needs=devices(2),
    expect=unless_legacy(outputs_with("PmapSharding"), outputs_with("NamedSharding")),
)
def sharding_of_outputs(impl: Any, cluster: Any) -> None:
    """A map's output has the sharding of its implementation."""
    cluster.twice(impl.map(double()), cluster.rows(2))


def _is_primitive_of_its_own(place: Place, seen: Sequence[str]) -> bool:
    return seen[0] == "xla_pmap"


def _is_jit_of_shard_map(place: Place, seen: Sequence[str]) -> bool:
    outer = seen[: seen.index("shard_map")] if "shard_map" in seen else []
    return ("jit" in outer or "pjit" in outer) and "xla_pmap" not in seen


@clause(
    "switches.built-on-shard-map",
    claim="migrate-pmap.built-on-shard-map",
    needs=devices(2),
    expect=unless_legacy(
        noted("primitives", "a primitive of its own", _is_primitive_of_its_own),
        noted("primitives", "a shard_map inside a jit", _is_jit_of_shard_map),
    ),
)
def built_on_shard_map(impl: Any, cluster: Any) -> None:
    """The primitives that a map is traced to, outermost first."""
    function, rows = impl.map(double()), cluster.rows(2)
    for step in ("first trace", "second trace"):
        traced = cluster.step(step, lambda: jax.make_jaxpr(function)(rows))
        if traced is not None:
            cluster.note("primitives", list(_primitives(traced.jaxpr)))


def _primitives(jaxpr: Any) -> list[str]:
    found = []
    for equation in jaxpr.eqns:
        found.append(equation.primitive.name)
        for inner in equation.params.values():
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                found += _primitives(getattr(inner, "jaxpr", inner))
    return found
