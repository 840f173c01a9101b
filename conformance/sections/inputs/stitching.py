"""Stitching: each process's own rows become one global array, and a shard_map sees all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.inputs import (
    CONTROL,
    FIX,
    TAKEN_AS_THEY_ARE,
    WIDTH,
    Shape,
    block_map,
    control,
    own,
    sharding_of,
    unless_shard_map,
)
from conformance.spec.arrays import returns_array
from conformance.spec.clause import clause
from conformance.spec.codes import Problem, mistaken
from conformance.spec.columns import of_jax, of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.expectation import OfEachStep, every, noted, returns, steps
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_SEVERAL, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

EXAMPLE = "migrate-pmap.stitch-example"
JOINED = "inputs.stitch.rows"  # the fact that rows are joined, in whatever numbers

# One device per process as well: there a mesh of one device per process is a mesh of all of them.
ONE_DEVICE_TOO = ("1x8", "2x1", "2x2", "4x2")


# --- The document's example -----------------------------------------------------------------------

BATCH, FEATURES = 32, 10


def loaded(process: int) -> Any:
    """Return the data that the example loads: 32 rows of 10, different in each process."""
    count = BATCH * FEATURES
    numbers = np.arange(process * count, (process + 1) * count)
    return numbers.reshape(BATCH, FEATURES).astype(np.int32)


def example_data() -> Any:
    """The example's data, computed as it is written."""
    start = jax.process_index() * BATCH
    return np.arange(start, start + BATCH).reshape(BATCH, FEATURES)


@described("32 rows of 10")
def loaded_here(place: Place) -> Any:
    return loaded(place.process)


@clause(
    "inputs.stitch.example-data",
    claim=EXAMPLE,
    left_out="NumPy raises before any array is made",
    expect=of_jax(returns(loaded_here)),
)
def example_as_written(impl: Implementation, cluster: Cluster) -> None:
    """The example's data as written: `np.arange(32)` reshaped to 32 rows of 10."""
    cluster.step("as written", example_data)


@described("this process's 32 rows, doubled")
def example_doubled(place: Place) -> Any:
    return loaded(place.process) * 2


def all_loaded(place: Place) -> Shape:
    """The shape of an array of every process's 32 rows."""
    return (BATCH * place.topology.processes, FEATURES)


AS_SAID = returns_array(example_doubled, all_loaded)


def _in_part(place: Place) -> Shape:
    """The shape of an array of the rows of the processes in a mesh of one device per process."""
    count = -(-place.topology.processes // place.topology.devices_per_process)
    return (BATCH * count, FEATURES)


IN_PART = returns_array(example_doubled, _in_part)


def _runs(place: Place, step: Step) -> tuple[bool, str]:
    right, saw = AS_SAID.check_step(place, step)
    if not right and IN_PART.check_step(place, step)[0]:
        saw = mistaken("the rows of the mesh's processes alone", str(step))
    has_devices = place.first_row < place.topology.processes
    where = "in the mesh" if has_devices else "in a process without a device of the mesh"
    said = saw if isinstance(saw, Problem) else Problem(saw)
    return right, said.framed(f"{where}: ")


AS_SAID_BY_PROCESS = OfEachStep(AS_SAID.text, _runs)


@dataclass(frozen=True, slots=True)
class MeshSize:
    """The number of devices of the example's mesh."""

    key: str
    text: str
    count: Callable[[], int]
    fact: str


MESHES: Mapping[str, MeshSize] = table(
    MeshSize(
        "example-mesh",
        "its mesh of `process_count()` devices",
        jax.process_count,
        fact="inputs.stitch.example-mesh",
    ),
    MeshSize("example-corrected", "a mesh of all devices", jax.device_count, fact=JOINED),
)


@family(
    "inputs.stitch.{size}",
    size=MESHES,
    claim=EXAMPLE,
    title="The document's example with data of the right size, on {size.text}.",
    topologies=ONE_DEVICE_TOO,
    expect=of_shard_map(
        steps(control=CONTROL, first_call=AS_SAID_BY_PROCESS, second_call=AS_SAID_BY_PROCESS),
        TAKEN_AS_THEY_ARE,
    ),
)
def example(impl: Implementation, cluster: Cluster, size: MeshSize) -> None:
    """The example's last step on data of the right size, and a shard_map of what it made."""
    mesh = jax.make_mesh((size.count(),), ("batch",))
    control(impl, cluster)
    sharding = sharding_of(mesh, "batch")
    function = block_map(impl, sharding, double())

    def run() -> Any:
        data = loaded(cluster.process)
        return function(jax.make_array_from_process_local_data(sharding, data))

    cluster.twice(run)


# --- One and several rows per device --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PerDevice:
    """The number of rows per device."""

    key: str
    text: str
    rows: int


ROWS: Mapping[str, PerDevice] = table(PerDevice("1", "one", 1), PerDevice("3", "three", 3))


def total_added(rows: int) -> Model:
    """A model of shard_map's output: one array of rows."""

    @described("this process's rows, plus the sum over all processes' rows")
    def model(place: Place) -> Any:
        here = place.rows(rows, WIDTH).reshape(-1, WIDTH)
        return here + place.all_rows(rows, WIDTH).sum((0, 1))

    return model


def total_added_by_device(rows: int) -> Model:
    """The same of pmap's output: a stack of what each device returned."""

    @described("this process's rows, plus the sum over all processes' rows")
    def model(place: Place) -> Any:
        return total_added(rows)(place).reshape(place.topology.devices_per_process, rows, WIDTH)

    return model


@family(
    "inputs.stitch.rows-per-device.{each}",
    each=ROWS,
    claim=FIX,
    title="Each process's own rows, {each.text} per device, joined and summed by a collective",
    fact=JOINED,
    topologies=ONE_DEVICE_TOO,
    expect=lambda each: unless_shard_map(
        returns_array(total_added_by_device(each.rows), own(each.rows, WIDTH)),
        returns_array(
            total_added(each.rows), lambda place: (place.topology.devices * each.rows, WIDTH)
        ),
    ),
)
def join_rows(impl: Implementation, cluster: Cluster, each: PerDevice) -> None:
    """Every process brings some rows for each of its devices; a psum must see them all."""
    data = cluster.rows(each.rows, WIDTH)

    def body(x: Any) -> Any:
        return x + jax.lax.psum(x.sum(0), "i")

    if impl.is_pmap:
        cluster.twice(impl.map(body), data)
        return
    sharding = impl.sharding()
    stitched = jax.make_array_from_process_local_data(sharding, data.reshape(-1, WIDTH))
    cluster.twice(block_map(impl, sharding, body), stitched)


PER_DEVICE = 8
FOUND = "found"


@described("this process's batch, doubled")
def own_batch_doubled(place: Place) -> Any:
    return place.rows(PER_DEVICE, WIDTH).reshape(-1, WIDTH) * 2


@clause(
    "inputs.stitch.process-batches",
    claim="multi-process.process-local-batches",
    fact=JOINED,
    topologies=ONE_AND_SEVERAL,
    expect=of_shard_map(
        every(
            returns(own_batch_doubled),
            noted(
                FOUND,
                "the batch of the whole cluster, split evenly over devices",
                lambda place, seen: seen == [place.topology.devices * PER_DEVICE, PER_DEVICE],
            ),
        ),
        TAKEN_AS_THEY_ARE,
    ),
)
def process_batches(impl: Implementation, cluster: Cluster) -> None:
    """The data loader of the multi-process document, with its mesh as written and smaller
    batches.
    """
    batch_size = jax.device_count() * PER_DEVICE
    per_process_batch_size = batch_size // jax.process_count()
    mesh = jax.make_mesh((jax.device_count(),), ("batch"))
    sharding = sharding_of(mesh, "batch")
    process_batch = cluster.rows(PER_DEVICE, WIDTH).reshape(per_process_batch_size, WIDTH)
    function = block_map(impl, sharding, double())
    for name in ("first call", "second call"):
        batch = jax.make_array_from_process_local_data(sharding, process_batch)
        cluster.step(name, function, batch)
        cluster.note(FOUND, [batch.shape[0], batch.addressable_shards[0].data.shape[0]])
