"""Stitching: each process's own rows become one global array, and a shard_map sees all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import ONE_AND_SEVERAL, Place
from conformance.judging.columns import of_shard_map
from conformance.judging.expectation import (
    Model,
    OfEachStep,
    difference,
    every,
    noted,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.probing.bodies import double
from conformance.sections.inputs import (
    CONTROL,
    FIX,
    GLOBAL_SHAPE,
    TAKEN_AS_THEY_ARE,
    WIDTH,
    block_map,
    control,
    sharding_of,
    unless_shard_map,
)

EXAMPLE = "migrate-pmap.stitch-example"
JOINED = "inputs.stitch.rows"  # the fact that rows are joined, in whatever numbers

# One device per process as well: there a mesh of one device per process is a mesh of all of them.
ONE_DEVICE_TOO = ("1x8", "2x1", "2x2", "4x2")


# --- The document's example -----------------------------------------------------------------------

BATCH, FEATURES = 32, 10


def loaded(process: int) -> Any:
    """What the example means to load: 32 rows of 10, unlike those of all other processes."""
    count = BATCH * FEATURES
    numbers = np.arange(process * count, (process + 1) * count)
    return numbers.reshape(BATCH, FEATURES).astype(np.int32)


def example_data() -> Any:
    """The example's data, computed as it is written."""
    start = jax.process_index() * BATCH
    return np.arange(start, start + BATCH).reshape(BATCH, FEATURES)


@clause(
    "inputs.stitch.example-data",
    claim=EXAMPLE,
    expect=of_shard_map(
        steps(
            as_written=returns(lambda place: loaded(place.process)),
            control=CONTROL,
        ),
        TAKEN_AS_THEY_ARE,
    ),
)
def example_as_written(impl: Any, cluster: Any) -> None:
    """The example's data as written: `np.arange(32)` reshaped to 32 rows of 10."""
    cluster.step("as written", example_data)
    control(impl, cluster)


def example_doubled(place: Place) -> Any:
    """this process's 32 rows, doubled"""
    return loaded(place.process) * 2


def _runs(place: Place, step: Step) -> tuple[bool, str]:
    if step.raised is not None:
        return False, str(step)
    wanted = [BATCH * place.topology.processes, FEATURES]
    shape = step.extra[GLOBAL_SHAPE]
    problem = difference(step.leaves[0], example_doubled(place))
    saw = f"global shape {shape} of {wanted}; {problem or step}"
    return problem is None and shape == wanted, saw


AS_SAID = OfEachStep("returns 32 rows of 10 per process, doubled, as one array", _runs)


@dataclass(frozen=True, slots=True)
class MeshSize:
    """How many devices the example's mesh has."""

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
    title="The example with data of the right size, on {size.text}.",
    fact=lambda size: size.fact,
    topologies=ONE_DEVICE_TOO,
    expect=of_shard_map(
        steps(control=CONTROL, first_call=AS_SAID, second_call=AS_SAID), TAKEN_AS_THEY_ARE
    ),
)
def example(impl: Any, cluster: Any, size: MeshSize) -> None:
    """The example's last step on data of the right size, and a shard_map of what it made."""
    mesh = jax.make_mesh((size.count(),), ("batch",))
    control(impl, cluster)
    sharding = sharding_of(mesh, "batch")
    function = block_map(impl, sharding, double())
    for name in ("first call", "second call"):
        stitched: list[Any] = []

        def run(stitched: list[Any] = stitched) -> Any:
            data = loaded(cluster.process)
            stitched.append(jax.make_array_from_process_local_data(sharding, data))
            return function(stitched[0])

        cluster.step(name, run)
        if stitched:
            cluster.note(GLOBAL_SHAPE, list(stitched[0].shape))


# --- One and several rows per device --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PerDevice:
    """How many rows each device has."""

    key: str
    text: str
    rows: int


ROWS: Mapping[str, PerDevice] = table(PerDevice("1", "one", 1), PerDevice("3", "three", 3))


def total_added(rows: int) -> Model:
    """A model of shard_map's output: one array of rows."""

    def model(place: Place) -> Any:
        """this process's rows, plus the sum over all processes' rows"""
        here = place.rows(rows, WIDTH).reshape(-1, WIDTH)
        return here + place.all_rows(rows, WIDTH).sum((0, 1))

    return model


def total_added_by_device(rows: int) -> Model:
    """The same of pmap's output: a stack of what each device returned."""

    def model(place: Place) -> Any:
        """this process's rows, plus the sum over all processes' rows"""
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
        returns(total_added_by_device(each.rows)), returns(total_added(each.rows))
    ),
)
def join_rows(impl: Any, cluster: Any, each: PerDevice) -> None:
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


@clause(
    "inputs.stitch.process-batches",
    claim="multi-process.process-local-batches",
    fact=JOINED,
    topologies=ONE_AND_SEVERAL,
    expect=of_shard_map(
        every(
            returns(lambda place: place.rows(PER_DEVICE, WIDTH).reshape(-1, WIDTH) * 2),
            noted(
                FOUND,
                "the batch of the whole cluster, split evenly over devices",
                lambda place, seen: seen == [place.topology.devices * PER_DEVICE, PER_DEVICE],
            ),
        ),
        TAKEN_AS_THEY_ARE,
    ),
)
def process_batches(impl: Any, cluster: Any) -> None:
    """The loader of the multi-process document, with its mesh as written and smaller batches."""
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
