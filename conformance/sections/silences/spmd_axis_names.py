"""vmap's `spmd_axis_name=` around a shard_map that uses the vmapped value in one way or another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.spec.clause import devices
from conformance.spec.columns import of_shard_map
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.spmd-axis-name"
NO_FORM = "a pmap is over one axis, which a vmap around it cannot name"
LEFT_OUT = "multi_controller.map tests several processes"
GROUPS, COLUMNS = 2, 4  # devices along the axes v, of the vmap, and i, of the map
COUNT = GROUPS * COLUMNS


@dataclass(frozen=True, slots=True)
class Use:
    """A way in which a shard_map uses the vmapped number; `fixes` the way that it helps."""

    key: str
    text: str
    mapped: Callable[..., Callable[[Any, Any], Any]]
    model: Callable[[Any, Any], Any]
    fixes: str | None = None
    check_vma: bool = True


def _sum(numbers: Any, rows: Any) -> Any:
    return numbers[:, None] + rows


# Each makes, of `jax.shard_map` over the mesh, a function of a number and a row, both vmapped.
USES: Mapping[str, Use] = table(
    Use(
        "passed",
        "that returns the vmapped number that it is passed",
        lambda over: lambda a, _: over(lambda a: a, in_specs=P(), out_specs=P())(a),
        lambda a, _: a,
        "silences.spmd-axis-name.of-shard-map.closed-over",
    ),
    Use(
        "closed-over",
        "that returns the vmapped number that it closes over",
        lambda over: lambda a, _: over(lambda: a, in_specs=(), out_specs=P())(),
        lambda a, _: a,
    ),
    Use(
        "doubled",
        "that doubles the vmapped number that it is passed",
        lambda over: lambda a, _: over(lambda a: a * 2, in_specs=P(), out_specs=P())(a),
        lambda a, _: a * 2,
    ),
    Use(
        "vmap-closed-over",
        "of a vmap that closes over the vmapped number",
        lambda over: (
            lambda a, r: over(jax.vmap(lambda x: a + x), in_specs=P("i"), out_specs=P("i"))(r)
        ),
        _sum,
    ),
    Use(
        "vmap-passed-unchecked",
        "of a vmap that is passed the vmapped number, under check_vma=False",
        lambda over: (
            lambda a, r: over(
                lambda a, r: jax.vmap(lambda x: a + x)(r), in_specs=(P(), P("i")), out_specs=P("i")
            )(a, r)
        ),
        _sum,
        "silences.spmd-axis-name.of-shard-map.vmap-closed-over",
        check_vma=False,
    ),
)


def numbers() -> Any:
    """The numbers, one to a group."""
    return np.arange(1, GROUPS + 1, dtype=np.float32)


def rows() -> Any:
    """A row to each group, a number of it to each device."""
    return np.arange(COUNT, dtype=np.float32).reshape(GROUPS, COLUMNS)


@family(
    "silences.spmd-axis-name.of-shard-map.{use}",
    use=USES,
    claim=CLAIM,
    title="A vmap with spmd_axis_name= another axis of the mesh, of a shard_map {use.text}.",
    fact="silences.spmd-axis-name.of-shard-map",
    fixes=lambda use: use.fixes,
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda use: of_shard_map(
        twice(
            returns(
                lambda place: use.model(numbers(), rows()),
                text="what it gives of each group's number and row",
            )
        ),
        NO_FORM,
    ),
)
def vmapped(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A vmap whose axis is one of the mesh, around a shard_map over the other."""
    mesh = jax.sharding.Mesh(np.array(cluster.devices).reshape(GROUPS, COLUMNS), ("v", "i"))
    over = partial(jax.shard_map, mesh=mesh, check_vma=use.check_vma)
    function = jax.jit(jax.vmap(use.mapped(over), spmd_axis_name="v"))
    cluster.twice(impl.adopt(function, "jit(shard_map)"), numbers(), rows())
