"""What surrounds a rewritten map: the mesh, the `jax.jit` wrapper and donation on it.

The wrapper is told from its absence by the programs that are compiled, counted from JAX's own log
of them, as a time alone would say little about how a call was carried out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    every,
    not_applicable,
    noted,
    raises,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.sections.rewriting.recipes import OVER_I, REPLICATED, WIDTH, doubled

TIMED_CALLS = 3
LEAST_FACTOR = 3  # of an eager call's time to a compiled one's; measured: 1,000 and more

ONLY_SHARD_MAP: Expectation = not_applicable("the clause is about shard_map alone")


# --- The mesh


def built(impl: Any, cluster: Any, keyword: str) -> None:
    """A mesh is made and a map run on it, with its input placed beforehand."""
    make: Any = jax.make_mesh
    sizes = {keyword: (8,)} if keyword else {}

    def run() -> Any:
        chosen = make(*([] if keyword else [(8,)]), **sizes, axis_names=("i",))
        rows = jax.sharding.PartitionSpec("i")
        function = jax.jit(
            jax.shard_map(lambda x: x * 2, mesh=chosen, in_specs=rows, out_specs=rows)
        )
        sharding = jax.sharding.NamedSharding(chosen, rows)
        return function(jax.make_array_from_process_local_data(sharding, cluster.rows(WIDTH)))

    cluster.twice(impl.adopt(run, "jit(shard_map)"))


for _name, _keyword, _title in (
    ("as-written", "shape", "given as shape=, as written"),
    ("fix-axis-shapes", "axis_shapes", "given as axis_shapes="),
    ("fix-axis-sizes", "axis_sizes", "given as axis_sizes="),
    ("fix-by-position", "", "given by position"),
):
    clause(
        f"rewriting.make-mesh.{_name}",
        claim="migrate-pmap.mesh-as-written",
        fixes=None if _name == "as-written" else "rewriting.make-mesh.as-written",
        needs=devices(8),
        topologies=ONE_AND_FOUR,
        parameters={"keyword": _keyword},
        title=f"The mesh of the examples, with its sizes {_title}, carries the basic map.",
        expect={
            LEGACY_PMAP: ONLY_SHARD_MAP,
            NEW_PMAP: ONLY_SHARD_MAP,
            SHARD_MAP: every(returns(doubled), OVER_I),
        },
    )(built)


@clause(
    "rewriting.mesh-required",
    claim="migrate-pmap.explicit-mesh-required",
    needs=devices(2),
    expect={
        LEGACY_PMAP: returns(doubled),
        NEW_PMAP: returns(doubled),
        SHARD_MAP: raises(ValueError, "mesh", otherwise=doubled),
    },
)
def mesh_required(impl: Any, cluster: Any) -> None:
    """pmap maps over the devices by itself, shard_map without a mesh is refused."""
    if impl.is_pmap:
        impl.select()
        cluster.twice(impl.adopt(jax.pmap(lambda x: x * 2)), cluster.rows(WIDTH))
        return
    rows = jax.sharding.PartitionSpec("i")

    def run(x: Any) -> Any:
        function = jax.jit(jax.shard_map(lambda x: x * 2, in_specs=rows, out_specs=rows))
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


def run_logged(impl: Any, cluster: Any, wrapped: bool) -> None:
    """A map of several operations, called twice on input that lies where it has to."""
    given = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    if impl.is_pmap:
        function = impl.map(worked)
    else:
        rows = jax.sharding.PartitionSpec("i")
        mapped = jax.shard_map(worked, mesh=impl.mesh(), in_specs=rows, out_specs=rows)
        function = (
            impl.adopt(jax.jit(mapped), "jit(shard_map)")
            if wrapped
            else impl.adopt(mapped, "shard_map")
        )
    with jax.log_compiles():
        cluster.twice(function, given)


ONCE = steps(
    first_call=compiled("one program is compiled", lambda count: count == 1),
    second_call=compiled("nothing is compiled again", lambda count: count == 0),
)

clause(
    "rewriting.jit-wrapper.with",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    parameters={"wrapped": True},
    title="A map, or a jit of shard_map, is compiled as one program and then reused.",
    fresh=True,
    expect=dict.fromkeys(IMPLEMENTATIONS, every(returns(worked_rows), ONCE)),
)(run_logged)

clause(
    "rewriting.jit-wrapper.without",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    parameters={"wrapped": False},
    title="Without jit a shard_map gives the same values, as one program per operation.",
    fresh=True,
    expect={
        LEGACY_PMAP: ONLY_SHARD_MAP,
        NEW_PMAP: ONLY_SHARD_MAP,
        SHARD_MAP: every(
            returns(worked_rows),
            OVER_I,
            compiled("more than one program is compiled", lambda count: count > 1),
        ),
    },
)(run_logged)


@clause(
    "rewriting.jit-wrapper.without-is-slower",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    expect={
        LEGACY_PMAP: ONLY_SHARD_MAP,
        NEW_PMAP: ONLY_SHARD_MAP,
        SHARD_MAP: noted(
            "times as long", f"at least {LEAST_FACTOR}", lambda _, value: value >= LEAST_FACTOR
        ),
    },
)
def without_is_slower(impl: Any, cluster: Any) -> None:
    """Without jit a call that was made before takes many times as long as with it."""
    rows = jax.sharding.PartitionSpec("i")
    mapped = jax.shard_map(worked, mesh=impl.mesh(), in_specs=rows, out_specs=rows)
    given = jax.device_put(cluster.rows(WIDTH), impl.sharding())

    def seconds(function: Any) -> float:
        jax.block_until_ready(function(given))
        began = time.perf_counter()
        for _ in range(TIMED_CALLS):
            jax.block_until_ready(function(given))
        return time.perf_counter() - began

    bare = seconds(impl.adopt(mapped, "shard_map"))
    wrapped = seconds(impl.adopt(jax.jit(mapped), "jit(shard_map)"))
    cluster.step("one call more", mapped, given)
    cluster.note("times as long", round(bare / wrapped))


def total(place: Place) -> Any:
    """the sum of all rows"""
    return place.all_rows(WIDTH).sum(0)


@clause(
    "rewriting.jit-wrapper.without-collective",
    claim="migrate-pmap.jit-wrapper-required",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect={
        LEGACY_PMAP: ONLY_SHARD_MAP,
        NEW_PMAP: ONLY_SHARD_MAP,
        SHARD_MAP: every(returns(total), REPLICATED),
    },
)
def without_collective(impl: Any, cluster: Any) -> None:
    """Without jit a psum in the body still adds up all devices, replicated."""
    spec = jax.sharding.PartitionSpec
    mapped = jax.shard_map(
        lambda x: jax.lax.psum(x.squeeze(0), "i"),
        mesh=impl.mesh(),
        in_specs=spec("i"),
        out_specs=spec(),
    )
    cluster.twice(impl.adopt(mapped, "shard_map"), impl.given(cluster.rows(WIDTH)))


# --- Donation on the wrapper

DELETED = "deleted or donated|has been deleted"


@clause(
    "rewriting.donation",
    claim="migrate-pmap.rewrite-donation",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            steps(call=returns(doubled), call_again=raises(Exception, DELETED)),
            steps(was_deleted=returns(lambda place: np.True_, text="the input was deleted")),
        ),
    ),
)
def donation(impl: Any, cluster: Any) -> None:
    """`donate_argnums` on the wrapper deletes the input, and a second use of it is refused."""
    function = impl.map(lambda x: x * 2, donate_argnums=(0,))
    given = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    cluster.step("call", function, given)
    cluster.step("was deleted", lambda: np.bool_(given.is_deleted()))
    cluster.step("call again", function, given)


@clause(
    "rewriting.donation.output-of-the-map",
    claim="migrate-pmap.rewrite-donation",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            steps(three_calls=returns(lambda place: doubled(place) * 4, text="rows times 8")),
            steps(
                were_deleted=returns(lambda place: np.ones(3, bool), text="each input was deleted")
            ),
        ),
    ),
)
def donation_fed_back(impl: Any, cluster: Any) -> None:
    """A donated state that is fed back, as in a training loop, is deleted by each call."""
    function = impl.map(lambda x: x * 2, donate_argnums=(0,))
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
    expect=dict.fromkeys(IMPLEMENTATIONS, returns(doubled)),
)
def no_donation(impl: Any, cluster: Any) -> None:
    """Without `donate_argnums` the input stays, and can be used again."""
    given = jax.device_put(impl.rows(cluster, WIDTH), impl.sharding())
    cluster.twice(impl.map(lambda x: x * 2), given)
