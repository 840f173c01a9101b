"""The implementation of new pmap: the sharding of its outputs, and the primitives to which it is
traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from conformance.spec.clause import clause, devices
from conformance.spec.columns import unless_legacy
from conformance.spec.expectation import along, every, in_steps, noted, returns, sharded, twice
from conformance.spec.expected import Expectation
from conformance.spec.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation


def _is_legacy(place: Place, sharding: Mapping[str, Any]) -> bool:
    """Return whether it is a PmapSharding with one chunk for each device of the mapped axis."""
    chunks = place.topology.devices_per_process
    spec = f"ShardingSpec((Chunked({chunks}), NoSharding()), (ShardedAxis(axis=0),))"
    return (sharding["type"], sharding["spec"]) == ("PmapSharding", spec)


def outputs(text: str, holds: Callable[[Place, Mapping[str, Any]], bool]) -> Expectation:
    """The rows doubled, in an array with this sharding."""
    values = returns(doubled(2), text="the rows, doubled")
    return twice(every(sharded(text, holds), values))


LEGACY_OUTPUTS = outputs("is a PmapSharding of one chunk per device", _is_legacy)
NAMED_OUTPUTS = outputs("is a NamedSharding along the map's axis", along("i"))


@clause(
    "switches.sharding-of-outputs",
    claim="migrate-pmap.pmap-sharding-legacy",
    cause="outputs-in-a-named-sharding",
    needs=devices(2),
    topologies=ONE_AND_SEVERAL,
    expect=unless_legacy(LEGACY_OUTPUTS, NAMED_OUTPUTS),
)
def sharding_of_outputs(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function's output has the sharding type of its implementation."""
    cluster.twice(impl.map(double()), impl.rows(cluster, 2))


# Besides the mapped primitive: the body's product, and the operations that convert its row.
BODY = ["squeeze", "mul", "broadcast_in_dim"]
CASTS = ("pvary", "convert_element_type")  # of the factor, if varying values are checked
MADE_GLOBAL, MADE_LOCAL = "host_local_array_to_global_array", "global_array_to_host_local_array"


def _is_primitive_of_its_own(place: Place, seen: Sequence[str]) -> bool:
    return list(seen) == ["xla_pmap", "mul"]


def _is_jit_of_shard_map(place: Place, seen: Sequence[str]) -> bool:
    outer = list(seen[1:-1]) if MADE_GLOBAL in seen[:1] and MADE_LOCAL in seen[-1:] else list(seen)
    body = [name for name in outer[2:] if name not in CASTS]
    return outer[:2] in (["jit", "shard_map"], ["pjit", "shard_map"]) and body == BODY


def traced_to(text: str, holds: Callable[[Place, Sequence[str]], bool]) -> Expectation:
    """Expect these primitives in both traces, and the right values."""
    traced = every(noted("primitives", text, holds), returns(lambda place: None, text="no array"))
    return every(
        twice(returns(doubled(2), text="the rows, doubled")),
        in_steps(traced, "first trace", "second trace"),
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
def built_on_shard_map(impl: Implementation, cluster: Cluster) -> None:
    """The primitives to which a mapped function is traced, outermost first."""
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
