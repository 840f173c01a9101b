"""The remedies for `Received incompatible devices`, each for the causes that it is meant for.

`device_put` is to help wherever the argument lay and however it is passed, with a mesh that was
built by hand and with one from `make_mesh`; redefining the map helps where the argument's place is
as good as the map's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import FOUR_PROCESSES, ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, Model, not_applicable, returns
from conformance.sections.errors import (
    FOUR_DEVICES,
    WHERE,
    WIDTH,
    added,
    first_half,
    times,
)

POSITIONAL_ONLY = "shard_map takes no keyword arguments"

PUT_CLAIM = "migrate-pmap.fix-device-put-named-sharding"
PREFIX = "errors.incompatible-devices"

MESH, MAKE_MESH = "mesh", "make-mesh"
MESHES = {MESH: "whose mesh comes from `Mesh`", MAKE_MESH: "whose mesh comes from `make_mesh`"}


def rows_plus_added(place: Place) -> Any:
    """this process's rows plus the unmapped argument"""
    return place.rows(WIDTH) + added()


def row_sums(place: Place) -> Any:
    """all rows, doubled, as the map over their columns returns them"""
    return place.rows(WIDTH) * 2


def mesh_by(how: str, chosen: Any) -> Any:
    """A mesh over the devices, made in one of the two documented ways."""
    if how == MAKE_MESH:
        return jax.make_mesh((len(chosen),), ("i",), devices=chosen)
    return jax.sharding.Mesh(np.array(chosen), ("i",))


def misplaced(impl: Any, cluster: Any, array: Any) -> Any:
    """The array on one device.

    Under shard_map in several processes as the host's: what lies in one process cannot be put
    across them, which has a clause of its own.
    """
    if impl.is_pmap or cluster.topology.processes == 1:
        return jax.device_put(array, cluster.local_devices[0])
    return array


def put(impl: Any, array: Any, how: str, chosen: Any, *spec: str) -> Any:
    """The remedy: `device_put` to where the map expects the array."""
    partition = jax.sharding.PartitionSpec(*spec)
    return jax.device_put(array, jax.sharding.NamedSharding(mesh_by(how, chosen), partition))


def put_mapped(impl: Any, cluster: Any, where: str, how: str) -> None:
    """The argument, which lay elsewhere, is first put where the map expects it."""
    place = WHERE[where]
    rows = place.put(impl, place.rows(impl.rows(cluster, WIDTH)))
    chosen = first_half(impl.devices) if place.half else impl.devices
    cluster.twice(place.map(impl, lambda x: x * 2), put(impl, rows, how, chosen, "i"))


def put_unmapped(impl: Any, cluster: Any, how: str) -> None:
    """An unmapped argument, which lay on one device, is first replicated with `P()`."""
    elsewhere = misplaced(impl, cluster, added())
    function = impl.map(lambda x, y: x + y, in_axes=(0, None))
    cluster.twice(function, impl.rows(cluster, WIDTH), put(impl, elsewhere, how, impl.devices))


def put_keyword(impl: Any, cluster: Any, how: str) -> None:
    """A keyword argument, which lay on one device, is first put where the map expects it."""
    rows = impl.rows(cluster, WIDTH)
    fixed = put(impl, misplaced(impl, cluster, rows), how, impl.devices, "i")
    function = impl.map(lambda x, y: x + 2 * y)
    cluster.twice(lambda: function(rows, y=fixed))


def put_leaf(impl: Any, cluster: Any, how: str) -> None:
    """The offending leaf of a pytree is first put where the map expects it."""
    rows = impl.rows(cluster, WIDTH)
    fixed = put(impl, misplaced(impl, cluster, rows), how, impl.devices, "i")
    function = impl.map(lambda t: t["a"] + 2 * t["b"][0])
    cluster.twice(function, {"a": rows, "b": [fixed]})


def put_output(impl: Any, cluster: Any, how: str) -> None:
    """The output of a map over other devices is first put on the map's."""
    count = len(impl.devices) // 2
    first, second = impl.devices[:count], impl.devices[count:]
    output = impl.map(lambda x: x, devices=second)(first_half(cluster.rows(WIDTH)))
    fixed = put(impl, output, how, first, "i")
    cluster.twice(impl.map(lambda x: x * 2, devices=first), fixed)


def put_outside(impl: Any, cluster: Any, how: str) -> None:
    """An array on one device is first put to where the output lies that it is added to."""
    output = impl.map(lambda x: x * 2)(impl.given(cluster.rows(WIDTH)))
    elsewhere = jax.device_put(cluster.rows(WIDTH), cluster.local_devices[0])
    fixed = put(impl, elsewhere, how, impl.devices, "i")
    cluster.twice(jax.numpy.add, output, fixed)


def everywhere(model: Any) -> dict[str, Expectation]:
    """The fixed program returns the model under every implementation."""
    return dict.fromkeys(IMPLEMENTATIONS, returns(model))


def _named(fix: str, how: str) -> str:
    return f"{PREFIX}.{fix}" + ("" if how == MESH else f"-{how}")


@dataclass(frozen=True, slots=True)
class Put:
    """A fix by `device_put`, and the clause whose error it remedies."""

    fix: str
    cause: str
    probe: Callable[..., None]
    model: Model
    topologies: tuple[str, ...] = ONE_AND_FOUR


_ALL, _HALF = WHERE["one-device"], WHERE["other-devices"]

PUTS = (
    Put("unmapped", "unmapped-argument", put_unmapped, rows_plus_added),
    Put("keyword", "keyword-one-device", put_keyword, times(3, _ALL)),
    Put("leaf", "leaf-one-device", put_leaf, times(3, _ALL)),
    Put("output", "output-of-other-map", put_output, times(2, _HALF), ONE_PROCESS),
    Put("outside", "output-and-one-device-added", put_outside, times(3, _ALL), ONE_PROCESS),
)

for _how, _text in MESHES.items():
    for _where in WHERE.values():
        if _where.key == "one-device":
            continue  # the document's own example, in errors_devices
        # A process cannot put from devices that it does not hold, whatever the order.
        _topologies = ONE_PROCESS if _where.key == "other-order" else _where.topologies
        clause(
            _named(f"fix-device-put-{_where.key}", _how),
            claim=PUT_CLAIM,
            title=f"`device_put` of what lay {_where.text}, {_text}.",
            fixes=f"{PREFIX}.{_where.key}",
            needs=FOUR_DEVICES if _where.topologies == ONE_PROCESS else processes(1),
            topologies=_topologies,
            expect=everywhere(times(2, _where)),
            parameters={"where": _where.key, "how": _how},
        )(put_mapped)
    for _one in PUTS:
        _keyword = _one.probe is put_keyword
        clause(
            _named(f"fix-device-put-{_one.fix}", _how),
            claim=PUT_CLAIM,
            title=f"{(_one.probe.__doc__ or '').rstrip('.')}, by a NamedSharding {_text}.",
            fixes=f"{PREFIX}.{_one.cause}",
            needs=FOUR_DEVICES if _one.probe is put_output else devices(2),
            topologies=_one.topologies,
            expect=everywhere(_one.model)
            | ({SHARD_MAP: not_applicable(POSITIONAL_ONLY)} if _keyword else {}),
            parameters={"how": _how},
        )(_one.probe)


@clause(
    f"{PREFIX}.fix-device-put-across-processes",
    claim=PUT_CLAIM,
    fixes=f"{PREFIX}.one-device",
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    expect={
        LEGACY_PMAP: not_applicable("pmap's arguments are each process's own"),
        NEW_PMAP: not_applicable("pmap's arguments are each process's own"),
        SHARD_MAP: returns(times(2, _ALL)),
    },
)
def fix_device_put_across_processes(impl: Any, cluster: Any) -> None:
    """`device_put` of what lies on one device of each process, to all processes' devices."""
    function = impl.map(lambda x: x * 2)
    rows = impl.rows(cluster, WIDTH)
    cluster.step("from the host", lambda: function(put(impl, rows, MESH, impl.devices, "i")))
    elsewhere = jax.device_put(rows, cluster.local_devices[0])
    cluster.twice(lambda: function(put(impl, elsewhere, MESH, impl.devices, "i")))


@clause(
    f"{PREFIX}.fix-in-axes-other-spec",
    claim="migrate-pmap.fix-redefine-in-axes",
    fixes=f"{PREFIX}.other-spec",
    needs=devices(2),
    expect=everywhere(row_sums),
)
def fix_in_axes_other_spec(impl: Any, cluster: Any) -> None:
    """`in_axes=1` for an argument that is sharded along its other dimension."""
    columns = WHERE["other-spec"].put(impl, cluster.rows(len(impl.devices)))
    cluster.twice(impl.map(lambda x: x * 2, in_axes=1, out_axes=1), columns)


@clause(
    f"{PREFIX}.fix-devices-one-device",
    claim="migrate-pmap.fix-redefine-devices",
    fixes=f"{PREFIX}.one-device",
    needs=devices(2),
    expect=everywhere(lambda place: place.rows(WIDTH)[:1] * 2),
)
def fix_devices_one_device(impl: Any, cluster: Any) -> None:
    """`devices=` names the one device on which the (one-row) argument lies."""
    chosen = cluster.local_devices[1:2]
    row = jax.device_put(cluster.rows(WIDTH)[:1], chosen[0])
    cluster.twice(impl.map(lambda x: x * 2, devices=chosen), row)


@clause(
    f"{PREFIX}.fix-devices-output-of-other-map",
    claim="migrate-pmap.fix-redefine-devices",
    fixes=f"{PREFIX}.output-of-other-map",
    needs=FOUR_DEVICES,
    expect=everywhere(times(4, _HALF)),
)
def fix_devices_output_of_other_map(impl: Any, cluster: Any) -> None:
    """`devices=` names the devices of the map whose output is taken."""
    second = cluster.local_devices[len(cluster.local_devices) // 2 :]
    output = impl.map(lambda x: x * 2, devices=second)(first_half(cluster.rows(WIDTH)))
    cluster.twice(impl.map(lambda x: x * 2, devices=second), output)


@clause(
    f"{PREFIX}.fix-devices-output-of-other-order",
    claim="migrate-pmap.fix-redefine-devices",
    fixes=f"{PREFIX}.output-of-other-order",
    needs=devices(2),
    expect=everywhere(times(4, _ALL)),
)
def fix_devices_output_of_other_order(impl: Any, cluster: Any) -> None:
    """`devices=` names the devices in the order of the map whose output is taken."""
    order = cluster.local_devices[::-1]
    output = impl.map(lambda x: x * 2, devices=order)(cluster.rows(WIDTH))
    cluster.twice(impl.map(lambda x: x * 2, devices=order), output)


@clause(
    f"{PREFIX}.fix-backend-one-device",
    claim="migrate-pmap.fix-redefine-backend",
    fixes=f"{PREFIX}.one-device",
    expect={
        LEGACY_PMAP: returns(lambda place: place.rows(WIDTH)[:1] * 2),
        NEW_PMAP: returns(lambda place: place.rows(WIDTH)[:1] * 2),
        SHARD_MAP: not_applicable("shard_map takes a mesh, and no backend"),
    },
)
def fix_backend_one_device(impl: Any, cluster: Any) -> None:
    """`backend=` names the platform of the one device on which the (one-row) argument lies."""
    first = cluster.local_devices[0]
    row = jax.device_put(cluster.rows(WIDTH)[:1], first)
    cluster.twice(impl.map(lambda x: x * 2, backend=first.platform), row)
