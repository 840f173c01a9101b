"""`device_put` as the fix for `Received incompatible devices`.

It must work for every placement and every way of passing, with a mesh made by hand and with one
from `make_mesh`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.errors import (
    FOUR_DEVICES,
    PART_OF_A_PROCESS,
    POSITIONAL_ONLY,
    WHERE,
    WIDTH,
    WITHOUT,
    Devices,
    Where,
    first_half,
    needed,
    on_mesh,
    plus_addend,
    remedied,
    second_half,
    times,
)
from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import everywhere, of_pmaps, of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, steps
from conformance.spec.family import family, table
from conformance.spec.topology import FOUR_PROCESSES, ONE_AND_FOUR, ONE_PROCESS
from conformance.worker.bodies import add, addend, double, doubled
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "migrate-pmap.fix-device-put-named-sharding"
# It is one remedy wherever the argument lay, but the two meshes differ: in their axes' types.
BY_MESH = "errors.incompatible-devices.fix-device-put"
BY_MAKE_MESH = "errors.incompatible-devices.fix-device-put-make-mesh"
FACT = "errors.incompatible-devices.fix-device-put{mesh}"
NOT_HELD = "a process cannot copy from another process's devices"
ROWS_DOUBLED = times(2, WHERE["one-device"])

DEFAULTS = Defaults(claim=CLAIM, needs=devices(2), topologies=ONE_AND_FOUR, fact=FACT)


@dataclass(frozen=True, slots=True)
class Making:
    """One of the two documented ways to make a mesh over devices."""

    key: str
    text: str
    over: Callable[[Devices], Any]


MESHES: Mapping[str, Making] = table(
    Making(
        "",
        "with a mesh from `Mesh`",
        lambda chosen: jax.sharding.Mesh(np.array(chosen), ("i",)),
    ),
    Making(
        "-make-mesh",
        "with a mesh from `make_mesh`",
        lambda chosen: jax.make_mesh((len(chosen),), ("i",), devices=chosen),
    ),
)


def one_device(cluster: Cluster, array: Any) -> Any:
    """The array on the first of this process's devices."""
    return jax.device_put(array, cluster.local_devices[0])


@DEFAULTS.clause(
    "errors.incompatible-devices.fix-device-put",
    fact=BY_MESH,
    fixes="errors.incompatible-devices.one-device",
    expect=everywhere(remedied(doubled(2))),
)
def fix_device_put(impl: Implementation, cluster: Cluster) -> None:
    """`device_put` with a NamedSharding whose mesh is made by `Mesh`."""
    mesh = jax.sharding.Mesh(np.array(impl.devices), ("i",))
    rows, function = one_device(cluster, impl.rows(cluster, 2)), impl.map(double())
    cluster.step(WITHOUT, impl.map(double()), rows)
    cluster.twice(lambda: function(on_mesh(rows, mesh, "i")))


@clause(
    "errors.incompatible-devices.fix-device-put-make-mesh",
    claim=CLAIM,
    fact=BY_MAKE_MESH,
    fixes="errors.incompatible-devices.one-device",
    needs=devices(2),
    left_out="in several processes, this mesh has devices of other processes",
    expect=everywhere(remedied(doubled(2))),
)
def fix_device_put_make_mesh(impl: Implementation, cluster: Cluster) -> None:
    """`device_put` with a NamedSharding whose mesh is made by `make_mesh`, as written."""
    mesh = jax.make_mesh((len(cluster.local_devices),), ("i",))
    rows, function = one_device(cluster, impl.rows(cluster, 2)), impl.map(double())
    cluster.step(WITHOUT, impl.map(double()), rows)
    cluster.twice(lambda: function(on_mesh(rows, mesh, "i")))


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-other-axis{mesh}",
    mesh=MESHES,
    title="`device_put` to a mesh with another axis name than the mapped function's, {mesh.text}.",
    fixes="errors.incompatible-devices.one-device",
    expect=everywhere(remedied(doubled(2))),
)
def put_other_axis(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Put the argument on a mesh with another axis name than the mapped function's."""
    rows, function = one_device(cluster, impl.rows(cluster, 2)), impl.map(double(), "rows")
    cluster.step(WITHOUT, impl.map(double(), "rows"), rows)
    cluster.twice(lambda: function(on_mesh(rows, mesh.over(impl.devices), "i")))


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-no-axis{mesh}",
    mesh=MESHES,
    title="`device_put` for a mapped function without an axis name, {mesh.text}.",
    fixes="errors.incompatible-devices.one-device",
    expect=of_pmaps(remedied(doubled(2)), "an axis of a mesh always has a name"),
)
def put_no_axis(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Put the argument of a mapped function without an axis name on a mesh, whose axis has
    a name.
    """
    impl.select()
    rows, function = one_device(cluster, impl.rows(cluster, 2)), impl.adopt(jax.pmap(double()))
    cluster.step(WITHOUT, impl.adopt(jax.pmap(double())), rows)
    cluster.twice(lambda: function(on_mesh(rows, mesh.over(impl.devices), "i")))


@family(
    "errors.incompatible-devices.fix-device-put-{where}{mesh}",
    # An argument on one device is the document's own example, above.
    where={key: where for key, where in WHERE.items() if key != "one-device"},
    mesh=MESHES,
    claim=CLAIM,
    fact=FACT,
    title="`device_put` of an argument {where.text}, {mesh.text}.",
    fixes="errors.incompatible-devices.{where}",
    # A process cannot put from devices that it does not hold, whatever the order.
    topologies=lambda where: ONE_PROCESS if where.key == "other-order" else where.topologies,
    left_out=lambda where: NOT_HELD if where.key == "other-order" else where.left_out,
    expect=lambda where: everywhere(remedied(times(2, where))),
)
def put_mapped(impl: Implementation, cluster: Cluster, where: Where, mesh: Making) -> None:
    """Put the argument on the mapped function's devices before the call."""
    rows = where.put(impl, where.rows(impl.rows(cluster, WIDTH)))
    chosen = first_half(impl.devices) if where.half else impl.devices
    cluster.step(WITHOUT, where.map(impl, double()), rows)
    function = where.map(impl, double())
    cluster.twice(lambda: function(on_mesh(rows, mesh.over(chosen), "i")))


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-unmapped{mesh}",
    mesh=MESHES,
    title=(
        "An unmapped argument on one device is first replicated with `P()`, by a "
        "NamedSharding {mesh.text}."
    ),
    fixes="errors.incompatible-devices.unmapped-argument",
    expect=everywhere(remedied(plus_addend(WIDTH))),
)
def put_unmapped(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Replicate an unmapped argument with `P()` before the call."""
    rows, elsewhere = impl.rows(cluster, WIDTH), one_device(cluster, addend(WIDTH))
    cluster.step(WITHOUT, impl.map(add(), in_axes=(0, None)), rows, elsewhere)
    function = impl.map(add(), in_axes=(0, None))
    cluster.twice(lambda: function(rows, on_mesh(elsewhere, mesh.over(impl.devices))))


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-keyword{mesh}",
    mesh=MESHES,
    title=(
        "A keyword argument on one device is first put on the mapped function's devices, by "
        "a NamedSharding {mesh.text}."
    ),
    fixes="errors.incompatible-devices.keyword-one-device",
    expect=of_pmaps(remedied(times(3, WHERE["one-device"])), POSITIONAL_ONLY),
)
def put_keyword(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Put a keyword argument on the mapped function's devices before the call."""
    rows = impl.rows(cluster, WIDTH)
    elsewhere = one_device(cluster, rows)
    faulty, function = (impl.map(lambda x, y: x + 2 * y) for _ in range(2))
    cluster.step(WITHOUT, lambda: faulty(rows, y=elsewhere))
    cluster.twice(lambda: function(rows, y=on_mesh(elsewhere, mesh.over(impl.devices), "i")))


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-leaf{mesh}",
    mesh=MESHES,
    title=(
        "The refused leaf of a pytree is first put on the mapped function's devices, by a "
        "NamedSharding {mesh.text}."
    ),
    fixes="errors.incompatible-devices.leaf-one-device",
    expect=everywhere(remedied(times(3, WHERE["one-device"]))),
)
def put_leaf(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Put the wrong leaf of a pytree on the mapped function's devices before the call."""
    rows = impl.rows(cluster, WIDTH)
    elsewhere = one_device(cluster, rows)
    faulty, function = (impl.map(lambda t: t["a"] + 2 * t["b"][0]) for _ in range(2))
    cluster.step(WITHOUT, faulty, {"a": rows, "b": [elsewhere]})

    def fixed() -> Any:
        return function({"a": rows, "b": [on_mesh(elsewhere, mesh.over(impl.devices), "i")]})

    cluster.twice(fixed)


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-output{mesh}",
    mesh=MESHES,
    title=(
        "An output on other devices is first put on the mapped function's devices, by a "
        "NamedSharding {mesh.text}."
    ),
    fixes="errors.incompatible-devices.output-of-other-map",
    needs=FOUR_DEVICES,
    topologies=ONE_PROCESS,
    left_out=PART_OF_A_PROCESS,
    expect=everywhere(remedied(times(2, WHERE["other-devices"]))),
)
def put_output(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Put an output on other devices on the mapped function's before the call."""
    first, second = first_half(impl.devices), second_half(impl.devices)
    output = impl.map(lambda x: x, devices=second)(first_half(cluster.rows(WIDTH)))
    cluster.step(WITHOUT, impl.map(double(), devices=first), output)
    function = impl.map(double(), devices=first)
    cluster.twice(lambda: function(on_mesh(output, mesh.over(first), "i")))


@DEFAULTS.family(
    "errors.incompatible-devices.fix-device-put-outside{mesh}",
    mesh=MESHES,
    fact="errors.incompatible-devices.fix-device-put-outside{mesh}",
    title=(
        "An array on one device is first given the sharding of the output to which it is "
        "added, by a NamedSharding {mesh.text}."
    ),
    fixes="errors.incompatible-devices.output-and-one-device-added",
    topologies=ONE_PROCESS,
    left_out="the array and the output are in one process",
    expect=everywhere(remedied(times(3, WHERE["one-device"]))),
)
def put_outside(impl: Implementation, cluster: Cluster, mesh: Making) -> None:
    """Give an array on one device the sharding of the output to which it is added."""
    output = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    elsewhere = one_device(cluster, cluster.rows(WIDTH))
    cluster.step(WITHOUT, jax.numpy.add, output, elsewhere)
    cluster.twice(lambda: output + on_mesh(elsewhere, mesh.over(impl.devices), "i"))


@clause(
    "errors.incompatible-devices.fix-device-put-across-processes",
    claim=CLAIM,
    fixes="errors.incompatible-devices.one-device",
    needs=processes(2),
    topologies=FOUR_PROCESSES,
    expect=of_shard_map(
        steps(
            without_the_fix=needed(ROWS_DOUBLED),
            from_the_host=returns(ROWS_DOUBLED),
            first_call=returns(ROWS_DOUBLED),
            second_call=returns(ROWS_DOUBLED),
        ),
        "pmap's arguments are each process's own",
    ),
)
def fix_device_put_across_processes(impl: Implementation, cluster: Cluster) -> None:
    """`device_put` of an array on one device of each process, to all processes' devices."""
    function, mesh = impl.map(double()), impl.mesh("i", impl.devices)
    rows = impl.rows(cluster, WIDTH)
    elsewhere = one_device(cluster, rows)
    cluster.step(WITHOUT, impl.map(double()), elsewhere)
    cluster.step("from the host", lambda: function(on_mesh(rows, mesh, "i")))
    cluster.twice(lambda: function(on_mesh(elsewhere, mesh, "i")))
