"""The surroundings of a rewritten function: the mesh, the `jax.jit` wrapper and its donation.

The wrapper's effect is shown by the programs that are compiled, counted from JAX's own log, because
a time would not show how a call was executed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.rewriting import (
    LABEL,
    OVER_I,
    REPLICATED,
    ROWS,
    WIDTH,
    P,
    make_mesh,
    shard_mapped,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_jax, of_shard_map
from conformance.spec.combining import of_result
from conformance.spec.defaults import Defaults
from conformance.spec.emissions import log_record
from conformance.spec.expectation import every, raises, returns, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import double, doubled, summed
from conformance.worker.protocols import Cluster, Implementation

OPERATIONS = 3  # of the body that is mapped with and without jit

DOUBLED = doubled(WIDTH)
ALONE = "the clause is about shard_map alone"

DEFAULTS = Defaults(needs=devices(2), topologies=ONE_AND_FOUR)


# --- The mesh


@dataclass(frozen=True, slots=True)
class Making:
    """One way to make the examples' mesh."""

    key: str
    text: str
    make: Callable[[], Any]
    fixes: str | None = "rewriting.make-mesh.as-written"
    fact: str = ""


RENAMED = "rewriting.make-mesh.renamed-sizes"

MAKINGS: Mapping[str, Making] = table(
    Making(
        "as-written",
        "given as shape=, as written",
        lambda: make_mesh(shape=(8,), axis_names=("i",)),
        fixes=None,
    ),
    Making(
        "fix-axis-shapes",
        "given as axis_shapes=",
        lambda: make_mesh(axis_shapes=(8,), axis_names=("i",)),
        fact=RENAMED,
    ),
    Making(
        "fix-axis-sizes",
        "given as axis_sizes=",
        lambda: make_mesh(axis_sizes=(8,), axis_names=("i",)),
        fact=RENAMED,
    ),
    Making(
        "fix-by-position",
        "given by position",
        lambda: make_mesh((8,), axis_names=("i",)),
    ),
)


@described("all devices in a line, in their order, and their number along 'i'")
def line_of_all(place: Place) -> Any:
    count = place.topology.devices
    return np.arange(count, dtype=np.int32), np.int32(count)


@DEFAULTS.family(
    "rewriting.make-mesh.{making}",
    making=MAKINGS,
    claim="migrate-pmap.mesh-as-written",
    title="The mesh of the examples, with its sizes {making.text}, has all 8 devices along 'i'.",
    needs=devices(8),
    expect=of_jax(steps(mesh=returns(line_of_all))),
)
def mesh_of_examples(impl: Implementation, cluster: Cluster, making: Making) -> None:
    """A mesh is made; the maps over it have clauses of their own."""

    def line() -> Any:
        mesh = making.make()
        all_devices = jax.devices()
        at = np.array([all_devices.index(device) for device in mesh.devices], np.int32)
        return at, np.int32(mesh.shape["i"])

    cluster.step("mesh", line)


NO_MESH = (
    r"The context mesh cannot be empty\. "
    r"Use `jax\.(set_mesh|sharding\.use_mesh)\(mesh\)` to enter"
)


@clause(
    "rewriting.mesh-required",
    claim="migrate-pmap.explicit-mesh-required",
    needs=devices(2),
    left_out="the result does not depend on the number of processes",
    expect={
        LEGACY_PMAP: twice(returns(DOUBLED)),
        NEW_PMAP: twice(returns(DOUBLED)),
        SHARD_MAP: twice(raises(ValueError, NO_MESH, phase="trace", otherwise=DOUBLED)),
    },
)
def mesh_required(impl: Implementation, cluster: Cluster) -> None:
    """pmap maps over the devices without a mesh; shard_map without a mesh is refused."""
    if impl.is_pmap:
        impl.select()
        cluster.twice(impl.adopt(jax.pmap(double())), cluster.rows(WIDTH))
        return

    function = jax.jit(jax.shard_map(double(), in_specs=ROWS, out_specs=ROWS))
    cluster.twice(impl.adopt(function, LABEL), cluster.rows(WIDTH))


# --- The jit wrapper


def worked(x: Any) -> Any:
    """Compute three operations, so that one program differs from a program per operation."""
    return (x * 2 + 1) * 3


@described("this process's rows, times 2, plus 1, times 3")
def worked_rows(place: Place) -> Any:
    return (place.rows(WIDTH) * 2 + 1) * 3


# The log records of `jax_log_compiles`.
LOGGED_COMPILING = (
    log_record("jax._src.dispatch", "WARNING", "^Finished (tracing|jaxpr to MLIR|XLA compilation)"),
    log_record("jax._src.interpreters.pxla", "WARNING", "^Compiling "),
)


def compiled(text: str, holds: Callable[[int], bool]) -> Expectation:
    """Expect this number of compiled programs in each call, counted from JAX's own log."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        count = sum("Finished XLA compilation" in one["message"] for one in step.logs)
        return holds(count), f"{count} programs compiled"

    return of_result(text, check_step, emits=LOGGED_COMPILING)


@DEFAULTS.clause(
    "rewriting.jit-wrapper.with",
    claim="migrate-pmap.jit-wrapper-required",
    fresh=True,
    expect=everywhere(
        every(
            twice(returns(worked_rows)),
            steps(
                first_call=compiled("one program is compiled", lambda count: count == 1),
                second_call=compiled("nothing is compiled again", lambda count: count == 0),
            ),
        )
    ),
)
def with_jit(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function, or a jit of shard_map, is compiled as one program and then reused."""
    if impl.is_pmap:
        function = impl.map(lambda x: worked(x))
    else:
        function = impl.adopt(shard_mapped(worked, impl.mesh()), LABEL)
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    with jax.log_compiles():
        cluster.twice(function, rows)


@DEFAULTS.clause(
    "rewriting.jit-wrapper.without",
    claim="migrate-pmap.jit-wrapper-required",
    fresh=True,
    expect=of_shard_map(
        twice(
            every(
                returns(worked_rows),
                OVER_I,
                compiled(
                    "at least a program per operation is compiled, in each call",
                    lambda count: count >= OPERATIONS,
                ),
            )
        ),
        ALONE,
    ),
)
def without_jit(impl: Implementation, cluster: Cluster) -> None:
    """Without jit, each call compiles one program per operation again, with the same values."""
    mapped = jax.shard_map(worked, mesh=impl.mesh(), in_specs=ROWS, out_specs=ROWS)
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    with jax.log_compiles():
        cluster.twice(impl.adopt(mapped, "shard_map"), rows)


@DEFAULTS.clause(
    "rewriting.jit-wrapper.without-collective",
    claim="migrate-pmap.jit-wrapper-required",
    expect=of_shard_map(twice(every(returns(summed(WIDTH)), REPLICATED)), ALONE),
)
def without_collective(impl: Implementation, cluster: Cluster) -> None:
    """Without jit, a psum in the body still sums over all devices and is replicated."""
    mapped = jax.shard_map(
        lambda x: jax.lax.psum(x.squeeze(0), "i"),
        mesh=impl.mesh(),
        in_specs=ROWS,
        out_specs=P(),
    )
    cluster.twice(impl.adopt(mapped, "shard_map"), impl.given(cluster.rows(WIDTH)))


# --- Donation on the wrapper

WAS_DELETED = returns(lambda place: np.True_, text="the input was deleted")

# Either message; the second comes from the path that inspects buffers.
DELETED = (
    r"^Array has been deleted with shape=float32\[\d,128\]\.$|"
    r"^INVALID_ARGUMENT: _rewrap_with_aval_and_sharding\(\) called on deleted or donated buffer$"
)


@DEFAULTS.clause(
    "rewriting.donation",
    claim="migrate-pmap.rewrite-donation",
    expect=everywhere(
        steps(
            call=returns(DOUBLED),
            was_deleted=WAS_DELETED,
            call_again=raises(RuntimeError, DELETED, phase="arguments"),
        ),
    ),
)
def donation(impl: Implementation, cluster: Cluster) -> None:
    """`donate_argnums` on the wrapper deletes the input, and a second use of it is refused."""
    function = impl.map(double(), donate_argnums=(0,))
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    cluster.step("call", function, rows)
    cluster.step("was deleted", lambda: np.bool_(rows.is_deleted()))
    cluster.step("call again", function, rows)


@DEFAULTS.clause(
    "rewriting.donation.output-of-the-map",
    claim="migrate-pmap.rewrite-donation",
    expect=everywhere(
        every(
            steps(three_calls=returns(lambda place: DOUBLED(place) * 4, text="rows times 8")),
            steps(
                were_deleted=returns(lambda place: np.ones(3, bool), text="each input was deleted")
            ),
        ),
    ),
)
def donation_fed_back(impl: Implementation, cluster: Cluster) -> None:
    """A donated state that is fed back, as in a training loop, is deleted by each call."""
    function = impl.map(double(), donate_argnums=(0,))
    states = [jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())]

    def calls() -> Any:
        for _ in range(3):
            states.append(jax.block_until_ready(function(states[-1])))
        return states[-1]

    cluster.step("three calls", calls)
    cluster.step("were deleted", lambda: np.array([one.is_deleted() for one in states[:-1]]))


@DEFAULTS.clause(
    "rewriting.donation.not-asked-for",
    claim="migrate-pmap.rewrite-donation",
    expect=everywhere(
        every(
            twice(returns(DOUBLED)),
            steps(was_deleted=returns(lambda place: np.False_, text="the input was not deleted")),
        )
    ),
)
def no_donation(impl: Implementation, cluster: Cluster) -> None:
    """Without `donate_argnums` the input remains and can be used again."""
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    cluster.twice(impl.map(double()), rows)
    cluster.step("was deleted", lambda: np.bool_(rows.is_deleted()))
