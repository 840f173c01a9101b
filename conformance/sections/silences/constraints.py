"""with_sharding_constraint in a mapped function's body, which changes no value of legacy pmap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, unless_legacy
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.releases import by_release
from conformance.worker.bodies import doubled
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices, and numbers in a row


RIGHT = twice(returns(doubled(COUNT)))


@dataclass(frozen=True, slots=True)
class Constraint:
    """The sharding that a body gives its row; `columns`, if legacy pmap refuses it."""

    key: str
    text: str
    sharding: Callable[[Cluster], Any]
    columns: Columns | None = None

    def expected(self) -> Columns:
        """The row, doubled, or what becomes of it where legacy pmap refuses it."""
        return self.columns or everywhere(RIGHT)


def named(axis_name: str, *spec: str) -> Callable[[Cluster], NamedSharding]:
    """Return a sharding over a mesh of all devices, whose one axis has this name."""

    def sharding(cluster: Cluster) -> NamedSharding:
        return NamedSharding(jax.sharding.Mesh(np.array(cluster.devices), (axis_name,)), P(*spec))

    return sharding


NO_MESH = twice(
    raises(
        RuntimeError,
        "^with_sharding_constraint requires a non-empty mesh",
        phase="trace",
        otherwise=doubled(COUNT),
    )
)
MANUAL = twice(
    raises(
        ValueError,
        "^The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes",
        phase="trace",
        otherwise=doubled(COUNT),
    )
)
MESH_FOUND_IN = "0.8.0"  # from which on a bare PartitionSpec is of the shard_map's mesh


def of_a_bare_spec(since: Expectation) -> Columns:
    """Return what becomes of a bare PartitionSpec: legacy pmap has no mesh, shard_map has."""
    return unless_legacy(NO_MESH, by_release(MESH_FOUND_IN, before=NO_MESH, since=since))


CONSTRAINTS: Mapping[str, Constraint] = table(
    Constraint("own-axis", "split over an axis named as the map's", named("i", "i")),
    Constraint("own-replicated", "replicated over a mesh named as the map's", named("i")),
    Constraint("other-axis", "split over an axis with another name", named("k", "k")),
    Constraint("other-replicated", "replicated over a mesh with another name", named("k")),
    Constraint(
        "one-device",
        "on one device",
        lambda cluster: jax.sharding.SingleDeviceSharding(cluster.devices[0]),
    ),
    Constraint(
        "spec",
        "by the bare PartitionSpec of the map's axis",
        lambda _: P("i"),
        of_a_bare_spec(MANUAL),
    ),
    Constraint(
        "spec-replicated", "by an empty PartitionSpec", lambda _: P(), of_a_bare_spec(RIGHT)
    ),
)


@family(
    "silences.constraint.{constraint}",
    constraint=CONSTRAINTS,
    claim="pmap-silence.constraints-in-a-body",
    title="A body constrains its row with with_sharding_constraint: {constraint.text}.",
    fact=lambda constraint: f"silences.constraint.{constraint.key}",
    needs=devices(COUNT),
    left_out="the result does not depend on the number of processes",
    expect=lambda constraint: constraint.expected(),
)
def constrained(impl: Implementation, cluster: Cluster, constraint: Constraint) -> None:
    """A body that doubles its row under a constraint."""
    sharding = constraint.sharding(cluster)
    function = impl.map(lambda x: jax.lax.with_sharding_constraint(x * 2, sharding))
    cluster.twice(function, impl.given(cluster.rows(COUNT)))
