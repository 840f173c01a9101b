"""A jitted function with `in_shardings` or `out_shardings`, called in a body.

Legacy pmap accepts one that is made for one device, as a function of a library may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH, doubled
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.devices-in-bodies",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    expect=everywhere(twice(returns(doubled))),
)


def on_second(_: Implementation, cluster: Cluster) -> jax.sharding.Sharding:
    return SingleDeviceSharding(cluster.devices[1])


def over_second(impl: Implementation, cluster: Cluster) -> jax.sharding.Sharding:
    return NamedSharding(impl.mesh(devices=[cluster.devices[1]]), P())


def over_all(impl: Implementation, _: Cluster) -> jax.sharding.Sharding:
    return NamedSharding(impl.mesh(), P())


@dataclass(frozen=True, slots=True)
class Named:
    """An option of the jit, and the sharding that it names."""

    key: str
    option: str
    text: str
    make: Callable[[Implementation, Cluster], jax.sharding.Sharding]
    fixes: str | None = None


IN, OUT = "in_shardings", "out_shardings"
ONE, MESH = "a SingleDeviceSharding", "a sharding over a mesh of one device"
ALL = "a replicated sharding over all devices"
NAMED: Mapping[str, Named] = table(
    Named("in-one", IN, ONE, on_second),
    Named("out-one", OUT, ONE, on_second),
    Named("in-mesh-of-one", IN, MESH, over_second),
    Named("out-mesh-of-one", OUT, MESH, over_second),
    Named("in-all", IN, ALL, over_all, "silences.shardings-in-bodies.in-one"),
    Named("out-all", OUT, ALL, over_all, "silences.shardings-in-bodies.out-one"),
)


@DEFAULTS.family(
    "silences.shardings-in-bodies.{named}",
    named=NAMED,
    title="A mapped body calls a jitted function whose {named.option} is {named.text}.",
    fact=lambda named: f"silences.shardings-in-bodies.{'all' if named.fixes else 'one'}",
)
def in_body(impl: Implementation, cluster: Cluster, named: Named) -> None:
    """A map whose body calls a jit that names devices by a sharding."""
    options: Any = {named.option: named.make(impl, cluster)}
    function = jax.jit(double(), **options)
    cluster.twice(impl.map(lambda x: function(x)), impl.given(cluster.rows(WIDTH)))
