"""Stitching: each process's own rows become one global array, and the shapes that this demands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    difference,
    every,
    not_applicable,
    noted,
    returns,
    steps,
)
from conformance.judging.observation import Step

FIX = "migrate-pmap.fix-stitch-local-data"
EXAMPLE = "migrate-pmap.stitch-example"

EVERYWHERE = ("1x8", "2x2", "4x2")
SEVERAL = ("2x2", "4x2")

NO_STITCHING = not_applicable("pmap takes the process's data as they are")


def shard_map_only(expected: Expectation) -> dict[str, Expectation]:
    """pmap has no global array to stitch."""
    return {LEGACY_PMAP: NO_STITCHING, NEW_PMAP: NO_STITCHING, SHARD_MAP: expected}


def over(impl: Any, sharding: Any, body: Callable[[Any], Any]) -> Any:
    """`body` on every block of an array of this sharding, jitted."""
    spec, mesh = sharding.spec, sharding.mesh
    function = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))
    return impl.adopt(function, "jit(shard_map)")


# --- The document's example -----------------------------------------------------------------------

BATCH, WIDTH = 32, 10
GLOBAL_SHAPE = "global shape"


def loaded(process: int) -> Any:
    """What the example means to load: 32 rows of 10, unlike those of all other processes."""
    count = BATCH * WIDTH
    return np.arange(process * count, (process + 1) * count).reshape(BATCH, WIDTH).astype(np.int32)


def example_doubled(place: Place) -> Any:
    """this process's 32 rows, doubled"""
    return loaded(place.process) * 2


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(2) * 2


CONTROL = returns(doubled, text="what the map itself returns")


def _runs(place: Place, step: Step) -> tuple[bool, str]:
    if step.raised is not None:
        return False, str(step)
    whole = [BATCH * place.topology.processes, WIDTH]
    shape = step.extra[GLOBAL_SHAPE]
    problem = difference(step.leaves[0], example_doubled(place))
    return problem is None and shape == whole, f"global shape {shape} of {whole}; {problem or step}"


AS_SAID = OfEachStep("returns 32 rows of 10 per process, doubled, as one array", _runs)
RUNS = steps(control=CONTROL, first_call=AS_SAID, second_call=AS_SAID)


def example_data() -> Any:
    """The example's data, computed as it is written."""
    start = jax.process_index() * BATCH
    return np.arange(start, start + BATCH).reshape(BATCH, WIDTH)


def stitched_and_doubled(impl: Any, cluster: Any, mesh: Any, data: Callable[[], Any]) -> None:
    """The example's last step on some data, and a shard_map of what it made; twice."""
    cluster.step("control", impl.map(lambda x: x * 2), impl.given(cluster.rows(2)))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    function = over(impl, sharding, lambda x: x * 2)
    for name in ("first call", "second call"):
        stitched: list[Any] = []

        def run(stitched: list[Any] = stitched) -> Any:
            stitched.append(jax.make_array_from_process_local_data(sharding, data()))
            return function(stitched[0])

        cluster.step(name, run)
        if stitched:
            cluster.note(GLOBAL_SHAPE, list(stitched[0].shape))


@clause(
    "inputs.stitch.example-data",
    claim=EXAMPLE,
    expect=shard_map_only(
        steps(
            as_written=returns(lambda place: loaded(place.process)),
            control=CONTROL,
        )
    ),
)
def example_as_written(impl: Any, cluster: Any) -> None:
    """The example's data as written: `np.arange(32)` reshaped to 32 rows of 10."""
    cluster.step("as written", example_data)
    cluster.step("control", impl.map(lambda x: x * 2), impl.given(cluster.rows(2)))


@clause(
    "inputs.stitch.example-mesh",
    claim=EXAMPLE,
    topologies=("1x8", "2x1", "2x2", "4x2"),
    expect=shard_map_only(RUNS),
)
def example_mesh(impl: Any, cluster: Any) -> None:
    """The example with data of the right size, on its mesh of `process_count()` devices."""
    mesh = jax.make_mesh((jax.process_count(),), ("batch",))
    stitched_and_doubled(impl, cluster, mesh, lambda: loaded(cluster.process))


@clause(
    "inputs.stitch.example-corrected",
    claim=EXAMPLE,
    topologies=("1x8", "2x1", "2x2", "4x2"),
    expect=shard_map_only(RUNS),
)
def example_corrected(impl: Any, cluster: Any) -> None:
    """The example with data of the right size, on a mesh of all devices."""
    mesh = jax.make_mesh((jax.device_count(),), ("batch",))
    stitched_and_doubled(impl, cluster, mesh, lambda: loaded(cluster.process))


# --- One and several rows per device --------------------------------------------------------------


def total_added(rows: int) -> Callable[[Place], Any]:
    """A model: this process's rows, plus the sum of all rows of all processes."""

    def model(place: Place) -> Any:
        return place.rows(rows, 2).reshape(-1, 2) + place.all_rows(rows, 2).sum((0, 1))

    model.__doc__ = "this process's rows, plus the sum over all processes' rows"
    return model


def by_device(model: Callable[[Place], Any], rows: int) -> Callable[[Place], Any]:
    """The same as a stack of what each device returned, which is pmap's output."""

    def stacked(place: Place) -> Any:
        return model(place).reshape(place.topology.devices_per_process, rows, 2)

    stacked.__doc__ = model.__doc__
    return stacked


def join_rows(impl: Any, cluster: Any, rows: int) -> None:
    """Every process brings `rows` rows for each of its devices; a psum must see them all."""
    data = cluster.rows(rows, 2)

    def body(x: Any) -> Any:
        return x + jax.lax.psum(x.sum(0), "i")

    if impl.is_pmap:
        cluster.twice(impl.map(body), data)
        return
    sharding = impl.sharding()
    stitched = jax.make_array_from_process_local_data(sharding, data.reshape(-1, 2))
    cluster.twice(over(impl, sharding, body), stitched)


def declare_rows(rows: int, said: str) -> None:
    """A clause for a number of rows per device."""
    model = total_added(rows)
    stack = returns(by_device(model, rows))
    clause(
        f"inputs.stitch.rows-per-device.{rows}",
        claim=FIX,
        topologies=("1x8", "2x1", "2x2", "4x2"),
        expect={LEGACY_PMAP: stack, NEW_PMAP: stack, SHARD_MAP: returns(model)},
        parameters={"rows": rows},
        title=f"Each process's own rows, {said} per device, joined and summed by a collective",
    )(join_rows)


declare_rows(1, "one")
declare_rows(3, "three")


PER_DEVICE = 8
FOUND = "found"


@clause(
    "inputs.stitch.process-batches",
    claim="multi-process.process-local-batches",
    topologies=EVERYWHERE,
    expect=shard_map_only(
        every(
            returns(lambda place: place.rows(PER_DEVICE, 2).reshape(-1, 2) * 2),
            noted(
                FOUND,
                "the batch of the whole cluster, split evenly over devices",
                lambda place, seen: seen == [place.topology.devices * PER_DEVICE, PER_DEVICE],
            ),
        )
    ),
)
def process_batches(impl: Any, cluster: Any) -> None:
    """The loader of the multi-process document, with its mesh as written and smaller batches."""
    batch_size = jax.device_count() * PER_DEVICE
    per_process_batch_size = batch_size // jax.process_count()
    mesh = jax.make_mesh((jax.device_count(),), ("batch"))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    process_batch = cluster.rows(PER_DEVICE, 2).reshape(per_process_batch_size, 2)
    function = over(impl, sharding, lambda x: x * 2)
    for name in ("first call", "second call"):
        batch = jax.make_array_from_process_local_data(sharding, process_batch)
        cluster.step(name, function, batch)
        cluster.note(FOUND, [batch.shape[0], batch.addressable_shards[0].data.shape[0]])
