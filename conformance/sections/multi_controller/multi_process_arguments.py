"""Arguments beyond a process's own rows: unmapped values, and global arrays.

An unmapped argument is each process's own value, and nothing compares them. A global array has a
row for each device of all processes: more rows than a pmap's process has devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.multi_controller.maps import OWN
from conformance.spec.clause import clause, processes
from conformance.spec.columns import Columns, of_pmaps
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 2
ONE_VALUE = "to shard_map a replicated argument is one global array, with one value"


def value(place: Place) -> Any:
    """Return the value that a process passes unmapped, different in each process."""
    return np.full(WIDTH, 100 * (1 + place.process), np.float32)


def added(rows: Any, values: Any) -> Any:
    """Return the model of `add_and_sum` for all rows, each with its process's value."""
    return rows + values, np.broadcast_to((rows + values).sum(0), rows.shape)


def by_process(place: Place, values: Callable[[Place], Any]) -> Any:
    """Each process's value, once for each of its devices."""
    count = place.topology.devices_per_process
    each = [values(Place(place.topology, process)) for process in range(place.topology.processes)]
    return np.repeat(np.stack(each), count, 0)


@described("each row plus this process's value, and the sum of all of these")
def each_its_own(place: Place) -> Any:
    both = added(place.all_rows(WIDTH), by_process(place, value))
    return [place.mine(one) for one in both]


def all_of_the_first(place: Place) -> Any:
    """The same, with process 0's value in every process."""
    both = added(place.all_rows(WIDTH), value(Place(place.topology, 0)))
    return [place.mine(one) for one in both]


def alone(place: Place) -> Any:
    """The same, of this process's devices alone."""
    return list(added(place.rows(WIDTH), value(place)))


def add_and_sum() -> Callable[..., Any]:
    """A row plus the unmapped value, and the sum of these over all devices."""
    return lambda x, w: [x + w, jax.lax.psum(x + w, "i")]


@dataclass(frozen=True, slots=True)
class Whole:
    """A kind of unmapped argument; `of` makes one of its value."""

    key: str
    text: str
    of: Callable[[Implementation, Any], Any]


WHOLE: Mapping[str, Whole] = table(
    Whole("numpy", "a NumPy array", lambda impl, w: w),
    Whole("number", "a Python number", lambda impl, w: float(w[0])),
    Whole(
        "host-local",
        "an array that is replicated over this process's devices",
        lambda impl, w: jax.device_put(w, impl.sharding(axis=None)),
    ),
    Whole(
        "output",
        "the output of another mapped function with `out_axes=None`",
        lambda impl, w: impl.map(lambda x: x, out_axes=None)(np.stack([w, w])),
    ),
)


@family(
    "multi_controller.multi-process-unmapped.{whole}",
    whole=WHOLE,
    claim="pmap-silence.transforms-span-processes",
    title="With `in_axes=None` each process passes another value: {whole.text}.",
    fact="multi_controller.multi-process-unmapped",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_pmaps(
        twice(
            returns(
                each_its_own,
                mistakes={OWN: alone, "process 0's value in every process": all_of_the_first},
            )
        ),
        ONE_VALUE,
    ),
)
def unmapped(impl: Implementation, cluster: Cluster, whole: Whole) -> None:
    """Map this process's rows and its own unmapped value."""
    function = impl.map(add_and_sum(), in_axes=(0, None))
    cluster.twice(function, cluster.rows(WIDTH), whole.of(impl, value(cluster)))


@clause(
    "multi_controller.multi-process-unmapped.number-differentiated",
    claim="pmap-silence.transforms-span-processes",
    title="jax.jvp of a map by a Python number with `in_axes=None`.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=of_pmaps(
        twice(returns(lambda place: [place.rows(WIDTH) * 2, place.rows(WIDTH)])),
        ONE_VALUE,
    ),
)
def differentiated(impl: Implementation, cluster: Cluster) -> None:
    """The rows times a number, and the derivative by it: in the body nothing communicates."""
    function = impl.map(lambda x, w: x * w, in_axes=(0, None))
    rows = cluster.rows(WIDTH)
    cluster.twice(lambda w: [*jax.jvp(lambda v: function(rows, v), (w,), (1.0,))], 2.0)


# --- Global arrays --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Global:
    """A global array with a row for each device; `axis_types` are of its mesh."""

    key: str
    text: str
    axis: str = "i"
    explicit: bool = False
    backwards: bool = False
    mapped: bool = True
    legacy: Expectation | None = None
    shard_map: Expectation | None = None

    def sharding(self, cluster: Cluster) -> jax.sharding.NamedSharding:
        """Its sharding."""
        listed = np.array(cluster.devices[::-1] if self.backwards else cluster.devices)
        kind = AxisType.Explicit if self.explicit else AxisType.Auto
        mesh = Mesh(listed, (self.axis,), axis_types=(kind,))
        return NamedSharding(mesh, P(self.axis) if self.mapped else P())


REFUSED = (
    r"^On multi-host platforms, the input to pmapped functions must have leading axis size equal "
    r"to the number of local devices if no `devices` argument is specified\. Got axis_size=[48], "
    r"num_local_devices=2$"
)


@described("this process's rows of the global array, plus the sum of all")
def summed(place: Place) -> Any:
    return place.rows(WIDTH) + place.all_rows(WIDTH).sum(0)


TOO_MANY = raises(ValueError, REFUSED, phase="lower", otherwise=summed)
SPLIT_TOO_FAR = raises(
    ValueError,
    r"^Sharding spec \('(i|rows)',\) implies that array axis 0 is partitioned [48] times, but does "
    r"not evenly divide the dimension size 1\. Got shape: \(1, 2\)",
    phase="trace",
    otherwise=summed,
)
ELSEWHERE = raises(
    ValueError,
    r"^Received incompatible devices for jitted computation\. Got argument args\[0\] of .* with "
    r"shape float32\[[48],2\] and (with )?device ids \[",
    phase="lower",
    otherwise=summed,
)

GLOBALS: Mapping[str, Global] = table(
    Global("auto", "sharded as required, on a mesh of Auto axes"),
    Global(
        "explicit",
        "sharded as required, on a mesh of Explicit axes",
        explicit=True,
        legacy=SPLIT_TOO_FAR,
    ),
    Global("other-name", "sharded over an axis of another name", axis="rows"),
    Global(
        "explicit-other-name",
        "sharded over an Explicit axis of another name",
        axis="rows",
        explicit=True,
        legacy=SPLIT_TOO_FAR,
    ),
    Global(
        "other-order",
        "sharded over the devices in reverse order",
        backwards=True,
        shard_map=ELSEWHERE,
    ),
    Global("replicated", "replicated over all devices", mapped=False),
)


def given_whole(array: Global) -> Columns:
    """Legacy refuses as many rows; to shard_map a global array is what it takes."""
    refused = twice(array.legacy or TOO_MANY)
    return {
        LEGACY_PMAP: refused,
        NEW_PMAP: refused,
        SHARD_MAP: twice(array.shard_map or returns(summed)),
    }


@family(
    "multi_controller.multi-process-global.{array}",
    array=GLOBALS,
    claim="pmap-silence.more-rows-than-devices",
    title="A global array as the mapped argument, {array.text}.",
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect=given_whole,
)
def given_global(impl: Implementation, cluster: Cluster, array: Global) -> None:
    """A map of a global array with a psum over all rows."""
    rows = cluster.all_rows(WIDTH)
    whole = jax.make_array_from_callback(
        rows.shape, array.sharding(cluster), lambda index: rows[index]
    )
    cluster.twice(impl.map(lambda x: x + jax.lax.psum(x, "i")), whole)
