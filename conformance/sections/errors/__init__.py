"""What several of the documented errors share: where an argument may lie, and what is put where.

A table of places serves the modules about `Received incompatible devices` and about what an error
leaves behind; the grid is the input of nested maps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import Need, processes
from conformance.catalogue.family import table
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.columns import Columns
from conformance.judging.expectation import Model, raises, returns
from conformance.probing.bodies import addend

DEVICES_CLAIM = "migrate-pmap.incompatible-devices"
OWN_DEVICES_CLAIM = "migrate-pmap.incompatible-sharding"
MESSAGE_CLAIM = "migrate-pmap.incompatible-devices-message"
AS_JIT_CLAIM = "migrate-pmap.incompatible-devices-as-jit"
IN_AXES_CLAIM = "migrate-pmap.fix-redefine-in-axes"

INCOMPATIBLE = "Received incompatible devices"
POSITIONAL_ONLY = "shard_map takes no keyword arguments"

WIDTH = 8  # of a row; so that rows can be sharded along it as well
FOUR_DEVICES = processes(1, devices_per_process=4)

OUTER, INNER = 4, 2  # devices of a map and of the map in it

Devices = Sequence[Any]


def on_mesh(array: Any, mesh: Any, *spec: str | None) -> Any:
    """The array by `device_put` on the mesh, sharded by `P(*spec)`."""
    partition = jax.sharding.PartitionSpec(*spec)
    return jax.device_put(array, jax.sharding.NamedSharding(mesh, partition))


def first_half(sequence: Any) -> Any:
    """Devices, or rows."""
    return sequence[: len(sequence) // 2]


def second_half(sequence: Any) -> Any:
    """Devices, or rows."""
    return sequence[len(sequence) // 2 :]


@dataclass(frozen=True, slots=True)
class Where:
    """A place for an argument of a map over `devices`, and which devices the map is over then."""

    key: str
    text: str
    devices: Callable[[Devices], Devices]
    mapped_spec: tuple[str | None, ...] | None = ("i",)
    unmapped_spec: tuple[str | None, ...] | None = ()
    topologies: tuple[str, ...] = ONE_PROCESS
    half: bool = False
    claim: str = DEVICES_CLAIM

    @property
    def needs(self) -> Need:
        """The least cluster that has such a place."""
        return FOUR_DEVICES if self.topologies == ONE_PROCESS else Need()

    def put(self, impl: Any, array: Any, *, mapped: bool = True) -> Any:
        """The array where the map does not expect it."""
        chosen = self.devices(impl.devices)
        spec = self.mapped_spec if mapped else self.unmapped_spec
        if spec is None:
            return jax.device_put(array, chosen[0])
        return on_mesh(array, impl.mesh("i", chosen), *spec)

    def map(self, impl: Any, body: Callable[..., Any], **options: Any) -> Any:
        """The map that is given the misplaced argument."""
        if self.half:
            options["devices"] = first_half(impl.devices)
        return impl.map(body, **options)

    def rows(self, rows: Any) -> Any:
        """As many of the rows as the map has devices."""
        return first_half(rows) if self.half else rows


WHERE: Mapping[str, Where] = table(
    Where(
        "one-device",
        "committed to one device",
        lambda devices: [d for d in devices if d in jax.local_devices()][:1],
        mapped_spec=None,
        unmapped_spec=None,
        topologies=ONE_AND_FOUR,
    ),
    Where("fewer-devices", "on half of the map's devices", first_half),
    Where("other-devices", "on devices that are not the map's", second_half, half=True),
    Where(
        "other-order",
        "on the map's devices in reverse order",
        lambda devices: devices[::-1],
        topologies=ONE_AND_FOUR,
        claim=OWN_DEVICES_CLAIM,
    ),
    Where(
        "other-spec",
        "sharded otherwise on the map's devices",
        list,
        mapped_spec=(None, "i"),
        unmapped_spec=("i",),
        topologies=ONE_AND_FOUR,
        claim=OWN_DEVICES_CLAIM,
    ),
    Where(
        "replicated",
        "replicated over the map's devices",
        list,
        mapped_spec=(),
        topologies=ONE_AND_FOUR,
        claim=OWN_DEVICES_CLAIM,
    ),
)


def plus_addend(width: int) -> Model:
    """The model of a map that adds `addend` to rows of this width."""

    def model(place: Place) -> Any:
        """this process's rows plus the unmapped argument"""
        return place.rows(width) + addend(width)

    return model


def times(factor: int, where: Where) -> Model:
    """The model of a map that multiplies its rows."""

    def model(place: Place) -> Any:
        return where.rows(place.rows(WIDTH)) * factor

    model.__doc__ = f"this process's rows times {factor}"
    return model


def half_doubled(place: Place) -> Any:
    """the rows of the first half of the devices, doubled"""
    return first_half(place.rows(2)) * 2


def refused_unless_legacy(model: Model, shard_map: Model | None = None) -> Columns:
    """Legacy resharded in silence, and so returns the model; both others refuse.

    `shard_map` is the model of its own result, where its global view makes that another.
    """
    return {
        LEGACY_PMAP: returns(model),
        NEW_PMAP: raises(ValueError, INCOMPATIBLE, otherwise=model),
        SHARD_MAP: raises(ValueError, INCOMPATIBLE, otherwise=shard_map or model),
    }


def grid(place: Place) -> Any:
    """One row per pair of an outer and an inner index, shape `(OUTER, INNER, 3)`."""
    return np.arange(1, 1 + OUTER * INNER * 3, dtype=np.float32).reshape(OUTER, INNER, 3)


def sync(name: str) -> None:
    """The documented barrier between processes."""
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(name)
