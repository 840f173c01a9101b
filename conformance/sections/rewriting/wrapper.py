"""What surrounds a rewritten map: the mesh, the `jax.jit` wrapper and donation on it.

The wrapper is told from its absence by the programs that are compiled, counted from JAX's own log
of them, as a time alone would say little about how a call was carried out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.family import family, table
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.columns import everywhere, of_shard_map
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    every,
    noted,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.probing.bodies import double, doubled, summed
from conformance.sections.rewriting import (
    OVER_I,
    REPLICATED,
    ROWS,
    WIDTH,
    P,
    make_mesh,
    placed_on,
    shard_mapped,
)

TIMED_CALLS = 3
LEAST_FACTOR = 3  # of an eager call's time to a compiled one's; measured: 1,000 and more

DOUBLED = doubled(WIDTH)
ALONE = "the clause is about shard_map alone"


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


@family(
    "rewriting.make-mesh.{making}",
    making=MAKINGS,
    claim="migrate-pmap.mesh-as-written",
    title="The mesh of the examples, with its sizes {making.text}, carries the basic map.",
    fact=lambda making: making.fact,
    fixes=lambda making: making.fixes,
    needs=devices(8),
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(every(returns(DOUBLED), OVER_I), ALONE),
)
def map_over_mesh(impl: Any, cluster: Any, making: Making) -> None:
    """A mesh is made and a map run on it, with its input placed beforehand."""

    def run() -> Any:
        mesh = making.make()
        return shard_mapped(double(), mesh)(placed_on(mesh, cluster.rows(WIDTH)))

    cluster.twice(impl.adopt(run, "jit(shard_map)"))


@clause(
    "rewriting.mesh-required",
    claim="migrate-pmap.explicit-mesh-required",
    needs=devices(2),
    expect={
        LEGACY_PMAP: returns(DOUBLED),
        NEW_PMAP: returns(DOUBLED),
        SHARD_MAP: raises(ValueError, "mesh", otherwise=DOUBLED),
    },
)
def mesh_required(impl: Any, cluster: Any) -> None:
    """pmap maps over the devices by itself, shard_map without a mesh is refused."""
    if impl.is_pmap:
        impl.select()
        cluster.twice(impl.adopt(jax.pmap(double())), cluster.rows(WIDTH))
        return

    def run(x: Any) -> Any:
        function = jax.jit(jax.shard_map(double(), in_specs=ROWS, out_specs=ROWS))
        return impl.adopt(function, "jit(shard_map)")(x)

    cluster.twice(run, cluster.rows(WIDTH))


# --- The jit wrapper


def worked(x: Any) -> Any:
    """Three operations, so that one program is told from a program per operation."""
    return (x * 2 + 1) * 3


def worked_rows(place: Place) -> Any:
    """this process's rows, times 2, plus 1, times 3"""
    return (place.rows(WIDTH) * 2 + 1) * 3


def compiled(text: str, holds: Callable[[int], bool]) -> Expectation:
    """How many programs each call made the runtime compile, told by JAX's own log of them."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            return False, str(step)
        count = sum("Finished XLA compilation" in one["message"] for one in step.logs)
        return holds(count), f"{count} programs compiled"

    return OfEachStep(text, of)


@clause(
    "rewriting.jit-wrapper.with",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    fresh=True,
    expect=everywhere(
        every(
            returns(worked_rows),
            steps(
                first_call=compiled("one program is compiled", lambda count: count == 1),
                second_call=compiled("nothing is compiled again", lambda count: count == 0),
            ),
        )
    ),
)
def with_jit(impl: Any, cluster: Any) -> None:
    """A map, or a jit of shard_map, is compiled as one program and then reused."""
    if impl.is_pmap:
        function = impl.map(worked)
    else:
        function = impl.adopt(shard_mapped(worked, impl.mesh()), "jit(shard_map)")
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    with jax.log_compiles():
        cluster.twice(function, rows)


@clause(
    "rewriting.jit-wrapper.without",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    fresh=True,
    expect=of_shard_map(
        every(
            returns(worked_rows),
            OVER_I,
            compiled("more than one program is compiled", lambda count: count > 1),
        ),
        ALONE,
    ),
)
def without_jit(impl: Any, cluster: Any) -> None:
    """Without jit a shard_map gives the same values, as one program per operation."""
    mapped = jax.shard_map(worked, mesh=impl.mesh(), in_specs=ROWS, out_specs=ROWS)
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    with jax.log_compiles():
        cluster.twice(impl.adopt(mapped, "shard_map"), rows)


@clause(
    "rewriting.jit-wrapper.without-is-slower",
    claim="migrate-pmap.jit-wrapper-required",
    fact="rewriting.jit-wrapper.without",
    needs=devices(2),
    expect=of_shard_map(
        noted("times as long", f"at least {LEAST_FACTOR}", lambda _, value: value >= LEAST_FACTOR),
        ALONE,
    ),
)
def without_is_slower(impl: Any, cluster: Any) -> None:
    """Without jit a call that was made before takes many times as long as with it."""
    mapped = jax.shard_map(worked, mesh=impl.mesh(), in_specs=ROWS, out_specs=ROWS)
    rows = jax.device_put(cluster.rows(WIDTH), impl.sharding())

    def seconds(function: Any) -> float:
        jax.block_until_ready(function(rows))
        began = time.perf_counter()
        for _ in range(TIMED_CALLS):
            jax.block_until_ready(function(rows))
        return time.perf_counter() - began

    bare = seconds(impl.adopt(mapped, "shard_map"))
    wrapped = seconds(impl.adopt(jax.jit(mapped), "jit(shard_map)"))
    cluster.step("one call more", mapped, rows)
    cluster.note("times as long", round(bare / wrapped))


@clause(
    "rewriting.jit-wrapper.without-collective",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(every(returns(summed(WIDTH)), REPLICATED), ALONE),
)
def without_collective(impl: Any, cluster: Any) -> None:
    """Without jit a psum in the body still adds up all devices, replicated."""
    mapped = jax.shard_map(
        lambda x: jax.lax.psum(x.squeeze(0), "i"),
        mesh=impl.mesh(),
        in_specs=ROWS,
        out_specs=P(),
    )
    cluster.twice(impl.adopt(mapped, "shard_map"), impl.given(cluster.rows(WIDTH)))


# --- Donation on the wrapper

DELETED = "deleted or donated|has been deleted"


@clause(
    "rewriting.donation",
    claim="migrate-pmap.rewrite-donation",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=everywhere(
        every(
            steps(call=returns(DOUBLED), call_again=raises(Exception, DELETED)),
            steps(was_deleted=returns(lambda place: np.True_, text="the input was deleted")),
        ),
    ),
)
def donation(impl: Any, cluster: Any) -> None:
    """`donate_argnums` on the wrapper deletes the input, and a second use of it is refused."""
    function = impl.map(double(), donate_argnums=(0,))
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    cluster.step("call", function, rows)
    cluster.step("was deleted", lambda: np.bool_(rows.is_deleted()))
    cluster.step("call again", function, rows)


@clause(
    "rewriting.donation.output-of-the-map",
    claim="migrate-pmap.rewrite-donation",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=everywhere(
        every(
            steps(three_calls=returns(lambda place: DOUBLED(place) * 4, text="rows times 8")),
            steps(
                were_deleted=returns(lambda place: np.ones(3, bool), text="each input was deleted")
            ),
        ),
    ),
)
def donation_fed_back(impl: Any, cluster: Any) -> None:
    """A donated state that is fed back, as in a training loop, is deleted by each call."""
    function = impl.map(double(), donate_argnums=(0,))
    states = [jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())]

    def calls() -> Any:
        for _ in range(3):
            states.append(jax.block_until_ready(function(states[-1])))
        return states[-1]

    cluster.step("three calls", calls)
    cluster.step("were deleted", lambda: np.array([one.is_deleted() for one in states[:-1]]))


@clause(
    "rewriting.donation.not-asked-for",
    claim="migrate-pmap.rewrite-donation",
    needs=devices(2),
    expect=everywhere(returns(DOUBLED)),
)
def no_donation(impl: Any, cluster: Any) -> None:
    """Without `donate_argnums` the input stays, and can be used again."""
    rows = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    cluster.twice(impl.map(double()), rows)
