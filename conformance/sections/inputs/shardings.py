"""What shard_map takes, reshards in silence or refuses, by the input's sharding and the mesh.

Of inputs that do not match the map, one section of the document says that they are a hard error,
another that they are resharded. Both are claims, so each input is put to both, jitted and not, on
meshes of both axis types: which of the two sections is right is for JAX to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import Probe, clause
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import (
    Expectation,
    every,
    not_applicable,
    raises,
    returns,
    sharded,
)

AXES = {"auto": "Auto", "explicit": "Explicit"}
OTHER = {"auto": "explicit", "explicit": "auto"}
WRAPPERS = {"jit": "jit(shard_map)", "plain": "shard_map"}

ONE_AND_TWO = ("1x8", "2x2")

SHARD_MAP_ONLY = not_applicable("the claim is about shard_map")


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(place.topology.devices) * 2


# A message that names the mismatch; one of the compiler's verifier is no answer to a user.
REFUSED = raises(ValueError, "incompatible devices|does not match", otherwise=doubled)


def _by_rows(place: Place, sharding: Mapping[str, Any]) -> bool:
    return (
        sharding["type"] == "NamedSharding"
        and sharding["spec"][:1] == ["i"]
        and len(sharding["devices"]) == place.topology.devices
    )


RESHARDED = every(
    returns(doubled), sharded("sharded by rows over all devices of the mesh", _by_rows)
)


def mesh_of(axes: str, devices: Sequence[Any], axis_name: str = "i") -> Any:
    """A 1-D mesh whose axis is Auto or Explicit."""
    kind = getattr(jax.sharding.AxisType, AXES[axes])
    return jax.sharding.Mesh(np.array(devices), (axis_name,), axis_types=(kind,))


def put(rows: Any, mesh: Any, *spec: str | None) -> Any:
    """`rows` on a mesh, by a spec."""
    return jax.device_put(rows, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)))


@dataclass(frozen=True, slots=True)
class Input:
    """How the same rows lie: `placed(rows, devices, axes)`, where the map's mesh is of `axes`."""

    name: str
    said: str
    placed: Callable[[Any, list[Any], str], Any]
    topologies: tuple[str, ...] = ONE_AND_TWO


MISMATCHED = (
    Input("numpy", "is a NumPy array", lambda rows, devices, axes: rows),
    Input(
        "uncommitted",
        "is a jax.Array that was never put anywhere",
        lambda rows, devices, axes: jnp.asarray(rows),
    ),
    Input(
        "one-device",
        "is committed to one device",
        lambda rows, devices, axes: jax.device_put(rows, jax.local_devices()[0]),
    ),
    Input(
        "other-order",
        "is sharded over the mesh's devices in reverse order",
        lambda rows, devices, axes: put(rows, mesh_of(axes, devices[::-1]), "i"),
    ),
    Input(
        "subset",
        "is sharded over half of the mesh's devices",
        lambda rows, devices, axes: put(rows, mesh_of(axes, devices[: len(devices) // 2]), "i"),
    ),
    Input(
        "other-spec",
        "lies on the mesh, sharded along its other dimension",
        lambda rows, devices, axes: put(rows, mesh_of(axes, devices), None, "i"),
    ),
    Input(
        "replicated",
        "lies on the mesh, replicated",
        lambda rows, devices, axes: put(rows, mesh_of(axes, devices)),
    ),
    Input(
        "replicated-other-type",
        "is replicated over a mesh of the same devices with the other axis type",
        lambda rows, devices, axes: put(rows, mesh_of(OTHER[axes], devices)),
    ),
)

# Each device holds what the map wants of it: nothing is to be moved.
ALIGNED = (
    Input(
        "same",
        "has the map's mesh and spec",
        lambda rows, devices, axes: put(rows, mesh_of(axes, devices), "i"),
    ),
    Input(
        "other-axis-name",
        "lies as the map wants it, by a mesh with another axis name",
        lambda rows, devices, axes: put(rows, mesh_of(axes, devices, "k"), "k"),
    ),
    Input(
        "other-axis-type",
        "lies as the map wants it, by a mesh with the other axis type",
        lambda rows, devices, axes: put(rows, mesh_of(OTHER[axes], devices), "i"),
    ),
)

INPUTS = {row.name: row for row in (*MISMATCHED, *ALIGNED)}


def given_to_shard_map(impl: Any, cluster: Any, lies: str, axes: str, wrapper: str) -> None:
    """One shard_map over all devices, its input placed in one of many ways."""
    rows, devices = cluster.all_rows(cluster.topology.devices), cluster.devices
    function: Any = jax.shard_map(
        lambda x: x * 2,
        mesh=mesh_of(axes, devices),
        in_specs=jax.sharding.PartitionSpec("i"),
        out_specs=jax.sharding.PartitionSpec("i"),
    )
    if wrapper == "jit":
        function = jax.jit(function)
    cluster.twice(impl.adopt(function, WRAPPERS[wrapper]), INPUTS[lies].placed(rows, devices, axes))


def declare(row: Input, family: str, claim: str, expected: Expectation) -> None:
    """A clause for each axis type and wrapper; in several processes for the jitted one only."""
    for wrapper, called in WRAPPERS.items():
        for axes, kind in AXES.items():
            clause(
                f"inputs.{family}.{wrapper}.{axes}.{row.name}",
                claim=claim,
                topologies=row.topologies if wrapper == "jit" else ONE_PROCESS,
                expect={
                    LEGACY_PMAP: SHARD_MAP_ONLY,
                    NEW_PMAP: SHARD_MAP_ONLY,
                    SHARD_MAP: expected,
                },
                parameters={"lies": row.name, "axes": axes, "wrapper": wrapper},
                title=f"`{called}` on a mesh of {kind} axes, whose input {row.said}",
            )(given_to_shard_map)


for one in MISMATCHED:
    declare(one, "refused", "migrate-pmap.input-mismatch-hard-error", REFUSED)
    declare(one, "resharded", "migrate-pmap.input-mismatch-reshards", RESHARDED)
for one in ALIGNED:
    declare(one, "aligned", "migrate-pmap.shard-map-global-view", RESHARDED)


# --- What pmap shards by itself -------------------------------------------------------------------

BY_ITSELF = "migrate-pmap.pmap-reshards-inputs"

KINDS: dict[str, Callable[[Any], Any]] = {"numpy": np.asarray, "uncommitted": jnp.asarray}
SAID = {"numpy": "a NumPy array", "uncommitted": "an uncommitted jax.Array"}


def tripled(place: Place) -> Any:
    """this process's rows, tripled"""
    return place.rows(3) * 3


def first_added(place: Place) -> Any:
    """this process's rows, plus the unmapped argument"""
    return place.rows(3) + np.array([10, 20, 30], np.float32)


def implicit(model: Any) -> dict[str, Expectation]:
    """Both pmaps shard what they are given; shard_map is said not to."""
    refused = raises(ValueError, "incompatible devices|does not match", otherwise=model)
    return {LEGACY_PMAP: returns(model), NEW_PMAP: returns(model), SHARD_MAP: refused}


def mapped_first(impl: Any, cluster: Any, kind: str) -> None:
    """The mapped axis comes first."""
    rows = KINDS[kind](impl.rows(cluster, 3))
    cluster.twice(impl.map(lambda x: x * 3), rows)


def mapped_last(impl: Any, cluster: Any, kind: str) -> None:
    """The mapped axis comes last (`in_axes=1`)."""
    columns = KINDS[kind](impl.rows(cluster, 3).T)
    cluster.twice(impl.map(lambda x: x * 3, in_axes=1), columns)


def unmapped(impl: Any, cluster: Any, kind: str) -> None:
    """One argument is not mapped (`in_axes=(0, None)`), the other already lies as it should."""
    added = KINDS[kind](np.array([10, 20, 30], np.float32))
    rows = jax.device_put(impl.rows(cluster, 3), impl.sharding())
    cluster.twice(impl.map(lambda x, y: x + y, in_axes=(0, None)), rows, added)


def declare_implicit(name: str, what: str, probe: Probe, model: Any) -> None:
    """A clause for each kind of input that pmap shards by itself."""
    for kind, said in SAID.items():
        clause(
            f"inputs.implicit.{kind}.{name}",
            claim=BY_ITSELF,
            topologies=ONE_AND_TWO,
            expect=implicit(model),
            parameters={"kind": kind},
            title=f"The input is {said}, {what}",
        )(probe)


declare_implicit("in-axes-0", "mapped over its first axis", mapped_first, tripled)
declare_implicit("in-axes-1", "mapped over its second axis", mapped_last, tripled)
declare_implicit("in-axes-none", "not mapped over", unmapped, first_added)
