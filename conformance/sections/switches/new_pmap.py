"""What the new pmap is made of: the sharding of its outputs, and what it is traced to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, Place
from conformance.judging.columns import unless_legacy
from conformance.judging.expectation import Expectation, every, noted, returns, sharded, steps
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
    topologies=ONE_AND_SEVERAL,
    expect=unless_legacy(outputs_with("PmapSharding"), outputs_with("NamedSharding")),
)
def sharding_of_outputs(impl: Any, cluster: Any) -> None:
    """A map's output has the sharding of its implementation."""
    cluster.twice(impl.map(double()), impl.rows(cluster, 2))


def _is_primitive_of_its_own(place: Place, seen: Sequence[str]) -> bool:
    return "xla_pmap" in seen[:1] and "shard_map" not in seen


def _is_jit_of_shard_map(place: Place, seen: Sequence[str]) -> bool:
    outer = seen[: seen.index("shard_map")] if "shard_map" in seen else []
    return ("jit" in outer or "pjit" in outer) and "xla_pmap" not in seen


def traced_to(text: str, holds: Callable[[Place, Sequence[str]], bool]) -> Expectation:
    """Both traces hold such primitives, and the map of which they are returns the right values."""
    both = noted("primitives", text, holds)
    values = returns(doubled(2), text="the rows, doubled")
    return every(
        steps(first_call=values, second_call=values), steps(first_trace=both, second_trace=both)
    )


@clause(
    "switches.built-on-shard-map",
    claim="migrate-pmap.built-on-shard-map",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=unless_legacy(
        traced_to("a primitive of its own, and no shard_map", _is_primitive_of_its_own),
        traced_to("a shard_map inside a jit", _is_jit_of_shard_map),
    ),
)
def built_on_shard_map(impl: Any, cluster: Any) -> None:
    """The primitives that a map is traced to, outermost first."""
    rows = impl.rows(cluster, 2)
    cluster.twice(impl.map(double()), rows)
    function = impl.map(double())
    for step in ("first trace", "second trace"):
        found: list[str] = []

        def trace(found: list[str] = found) -> None:
            found.extend(_primitives(jax.make_jaxpr(function)(rows).jaxpr))

        cluster.step(step, trace)
        cluster.note("primitives", found)


def _primitives(jaxpr: Any) -> list[str]:
    found = []
    for equation in jaxpr.eqns:
        found.append(equation.primitive.name)
        for inner in equation.params.values():
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                found += _primitives(getattr(inner, "jaxpr", inner))
    return found
