"""Meshes over half of the devices: who takes part, what the others have, and who may stay away."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.multi_controller import (
    NOT_HERE,
    TEXT,
    WIDTH,
    by_half,
    in_second_half,
    local_parts,
    near,
    notes_text,
    row_of,
    spread,
)
from conformance.spec.clause import processes
from conformance.spec.columns import of_jax
from conformance.spec.combining import any_of
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import OfEachStep, every, noted, returns, steps
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    left_out="one process owns all devices",
)


def half_mesh() -> jax.sharding.Mesh:
    """The tutorial's mesh over the second half of the devices."""
    half = jax.device_count() // 2
    explicit = (jax.sharding.AxisType.Explicit,)
    return jax.make_mesh((half,), ("a",), devices=jax.devices()[half:], axis_types=explicit)


def half_data() -> Any:
    """The tutorial's data."""
    return np.arange(64).reshape(8, 8).astype(np.int32)


def in_half() -> Any:
    """The tutorial's array over half of the devices."""
    return jax.device_put(half_data(), spread(half_mesh(), "a"))


@described("the blocks of this process's devices, none where it has no device in the mesh")
def blocks(place: Place) -> list[Any]:
    if not in_second_half(place):
        return []
    half = place.topology.devices // 2
    first = place.first_row - half
    return list(
        half_data().reshape(half, 8 // half, 8)[first:][: place.topology.devices_per_process]
    )


@described("the blocks of this process's devices, doubled, none where it has no device in the mesh")
def doubled_blocks(place: Place) -> list[Any]:
    return [2 * one for one in blocks(place)]


@DEFAULTS.clause(
    "multi_controller.subset.placed",
    claim="multi-process.mesh-over-a-subset",
    expect=of_jax(
        every(
            steps(placed=returns(blocks), computed=returns(doubled_blocks)),
            noted(
                "lies",
                "of the whole data's shape, on the devices of the second half of the processes",
                lambda place, seen: (
                    seen == [8, 8, *range(place.topology.processes // 2, place.topology.processes)]
                ),
            ),
        )
    ),
)
def placed(impl: Implementation, cluster: Cluster) -> None:
    """All processes put data on half of the devices and compute with it."""
    arrays: list[Any] = []

    def run(make: Any) -> Any:
        arrays.append(make())
        return local_parts(arrays[-1])

    def lies() -> list[int]:
        owners = {device.process_index for device in arrays[-1].sharding.device_set}
        return [*arrays[-1].shape, *sorted(owners)]

    cluster.step("placed", run, in_half)
    cluster.note("lies", lies())
    cluster.step("computed", run, lambda: jax.jit(lambda x: 2 * x)(arrays[0]))
    cluster.note("lies", lies())


# --- The sum, in those that take part and in the others -------------------------------------------

EXACT = float(np.sin(np.arange(64.0)).sum())


def _number(place: Place, step: Step) -> tuple[bool, str]:
    if step.raised is not None:
        return False, str(step)
    text = step.extra.get(TEXT, "")
    try:
        return abs(float(text) - EXACT) <= 2e-6, f"said {text!r}"
    except ValueError:
        return False, f"said {text!r}: {step}"


SAYS_NUMBER = OfEachStep("prints the sum", _number, claims=notes_text("", lambda _: "").claims)
SAYS_SHAPE = notes_text("its shape and dtype", lambda place: "Array(shape=(), dtype=float32)")
NEAR = near(lambda place: EXACT, "the sum of all 64 sines, up to rounding")


@DEFAULTS.clause(
    "multi_controller.subset.participants",
    claim="multi-process.subset-participants",
    title="A process with a device in the mesh gets the sum and can print it.",
    expect=of_jax(
        steps(
            summed=by_half(
                returns(lambda place: [], text="nothing"),
                near(lambda place: EXACT, "the sum of all 64 sines, up to rounding"),
            ),
            # The next clause tests the other processes: here they may get an error.
            printed=by_half(any_of(SAYS_SHAPE, NOT_HERE), SAYS_NUMBER),
        )
    ),
)
@DEFAULTS.clause(
    "multi_controller.subset.others",
    claim="multi-process.subset-others",
    title=(
        "A process without a device in the mesh runs the same lines: it has no data, and "
        "prints shape and dtype."
    ),
    expect=of_jax(
        steps(
            summed=by_half(
                returns(lambda place: [], text="nothing: it has no copy of the sum"),
                NEAR,
            ),
            printed=by_half(
                SAYS_SHAPE,
                SAYS_NUMBER,
            ),
        )
    ),
)
def summed(impl: Implementation, cluster: Cluster) -> None:
    """The tutorial's sum over half of the devices, in all processes."""
    array = in_half()
    result = jnp.sum(jnp.sin(array))

    def copy() -> Any:
        copies = local_parts(result)
        return copies[0] if copies else []

    cluster.step("summed", copy)
    text = cluster.step("printed", lambda: f"{result}")
    if text is not None:
        cluster.note(TEXT, text)


@described("the sum of all rows")
def total(place: Place) -> Any:
    return place.all_rows(WIDTH).sum()


@described("the sum of this process's rows")
def total_of_own(place: Place) -> Any:
    return place.rows(WIDTH).sum()


ALL_TOGETHER = returns(total, mistakes={"the sum over this process's own devices": total_of_own})


@DEFAULTS.clause(
    "multi_controller.subset.others-absent",
    claim="multi-process.subset-others-absent",
    expect=of_jax(
        steps(
            without_the_others=by_half(
                returns(lambda place: [], text="nothing: it leaves the computation out"),
                near(lambda place: EXACT, "the sum of all 64 sines, up to rounding"),
            ),
            once_more=by_half(
                returns(lambda place: [], text="nothing: it leaves the computation out"),
                near(lambda place: EXACT, "the sum of all 64 sines, up to rounding"),
            ),
            all_together=ALL_TOGETHER,
        )
    ),
)
def others_absent(impl: Implementation, cluster: Cluster) -> None:
    """Only processes with a device in the mesh run the sum; then all run a program over all
    devices.
    """
    array = in_half()
    rows = jax.device_put(cluster.all_rows(WIDTH), spread(row_of(jax.devices()), "a"))
    takes_part = in_second_half(cluster)
    for name in ("without the others", "once more"):
        cluster.step(name, lambda: local_parts(jnp.sum(jnp.sin(array)))[0] if takes_part else [])
    cluster.step("all together", lambda: jnp.sum(rows))


@described("the sum of the rows of this process's half of the devices")
def halves_sum(place: Place) -> Any:
    half = place.topology.devices // 2
    rows = place.all_rows()
    return rows[half:].sum() if in_second_half(place) else rows[:half].max()


@described("the same of this process's rows alone")
def own_sum(place: Place) -> Any:
    return place.rows().sum() if in_second_half(place) else place.rows().max()


@DEFAULTS.clause(
    "multi_controller.subset.two-at-once",
    claim="multi-process.mesh-over-a-subset",
    expect=of_jax(
        steps(
            apart=returns(
                halves_sum,
                text="the maximum of the first half's rows there, the sum of the second's here",
                mistakes={"that of this process's own devices": own_sum},
            ),
            apart_again=returns(halves_sum, text="the same"),
            all_together=ALL_TOGETHER,
        )
    ),
)
def two_at_once(impl: Implementation, cluster: Cluster) -> None:
    """Each half of the processes runs its own program over its devices, at the same time."""
    half = jax.device_count() // 2
    mine = slice(half, None) if in_second_half(cluster) else slice(None, half)
    array = jax.device_put(cluster.all_rows()[mine], spread(row_of(jax.devices()[mine]), "a"))
    rows = jax.device_put(cluster.all_rows(WIDTH), spread(row_of(jax.devices()), "a"))
    reduce = jnp.sum if in_second_half(cluster) else jnp.max
    for name in ("apart", "apart again"):
        cluster.step(name, lambda: reduce(array))
    cluster.step("all together", lambda: jnp.sum(rows))
