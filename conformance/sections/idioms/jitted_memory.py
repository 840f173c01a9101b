"""The memory of a plain jit over sharded arrays: the loops of `memory.py`, nothing mapped.

A state is replicated over all devices. What a body gathers from the other devices is constrained
to be replicated, for XLA would otherwise choose how a scatter of sharded updates is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms.sharded import sharded, split, whole
from conformance.sections.idioms.sized import (
    AHEAD,
    FED,
    RATE,
    Loop,
    Sized,
    and_a_copy,
    ends_and_sum,
    examples,
    features,
    initial,
    large_batch,
    needed,
    of_one,
    of_the_state,
    rows_of,
    scored_when_trained,
    scored_whole,
    tables_after,
    trained_for,
    unaligned,
    weigh,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.family import family, table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.memory-of-jit-with-shardings"
BY_JIT = "in a plain jit over sharded arrays"


def batch(impl: Implementation, cluster: Cluster, n: int) -> tuple[Any, Any]:
    """The examples of step `n` as global arrays."""
    which, targets = examples(cluster, n)
    return sharded(impl, cluster.mine(which)), sharded(impl, cluster.mine(targets))


def factorise(impl: Implementation, count: int) -> Callable[..., Any]:
    """A step of descent of two tables by the examples of all `count` devices."""

    def update(state: Any, which: Any, targets: Any) -> Any:
        rows = {"items": which[..., 1].ravel(), "users": which[..., 0].ravel()}

        def loss(chosen: Any) -> Any:
            return (((chosen["users"] * chosen["items"]).sum(-1) - targets.ravel()) ** 2).sum() / 2

        gradient = jax.grad(loss)({name: state[name][rows[name]] for name in state})
        rows, gradient = jax.lax.with_sharding_constraint((rows, gradient), whole(impl))
        rate = RATE / count
        new = {name: state[name].at[rows[name]].add(-rate * gradient[name]) for name in state}
        return new, jnp.maximum(new["users"].max(), new["items"].max())

    return update


def trained(
    impl: Implementation, cluster: Cluster, **options: Any
) -> tuple[Callable[[], Any], Any]:
    """A maker of a state that was trained for one step, and the jitted function that trains it."""
    rows = rows_of(cluster)
    place = whole(impl)
    start = jax.jit(lambda: {"items": initial(rows), "users": initial(rows)}, out_shardings=place)
    step = jax.jit(factorise(impl, len(cluster.devices)), out_shardings=place, **options)
    first = batch(impl, cluster, 1)
    return lambda: step(start(), *first)[0], step


def copies(tree: Any) -> Any:
    """`ends_and_sum` of this process's copies of each leaf, as they are if they are but numbers."""
    found = []
    for leaf in jax.tree.leaves(tree):
        each = np.stack([np.asarray(shard.data) for shard in leaf.addressable_shards])
        found.append(ends_and_sum(each) if each.ndim > 1 else each)
    return found


def keeping(impl: Implementation, cluster: Cluster) -> Loop:
    """A training step whose state is not donated."""
    before, step = trained(impl, cluster)
    second = batch(impl, cluster, 2)
    return Loop(before, lambda state: step(state, *second), copies)


def giving(impl: Implementation, cluster: Cluster) -> Loop:
    """A training step whose state is donated."""
    before, step = trained(impl, cluster, donate_argnums=(0,))
    second = batch(impl, cluster, 2)
    return Loop(before, lambda state: step(state, *second), copies)


def evaluated(impl: Implementation, cluster: Cluster) -> Loop:
    """A state that is trained by one jitted function goes to another one over the same devices."""
    before, _ = trained(impl, cluster)
    place = whole(impl)

    def score(table: Any, x: Any) -> Any:
        return (x @ table.sum(0)).sum(0)

    evaluate = jax.jit(lambda state, x: score(state["items"], x), out_shardings=place)
    x = sharded(impl, cluster.mine(features(cluster)))

    def shown(scores: Any) -> Any:
        return np.stack([np.asarray(shard.data) for shard in scores.addressable_shards])

    return Loop(before, lambda state: evaluate(state, x), shown)


def fetched(impl: Implementation, cluster: Cluster) -> Loop:
    """A replicated state on the host: jax.device_get fetches one copy."""
    before, _ = trained(impl, cluster)
    return Loop(before, jax.device_get, of_one)


def prefetched(impl: Implementation, cluster: Cluster) -> Loop:
    """Batches are on the devices before they are used: one is in use, and two are ahead of it."""
    before, _ = trained(impl, cluster)
    update = factorise(impl, len(cluster.devices))
    step = jax.jit(
        lambda state, which, many: update(state, which, many.mean(-1)), out_shardings=whole(impl)
    )
    data = [large_batch(cluster, n) for n in range(2, 3 + AHEAD)]

    def waiting() -> Any:
        return before(), [jax.device_put(one, split(impl)) for one in data[:AHEAD]]

    def turn(left: Any) -> Any:
        state, batches = left
        batches.append(jax.device_put(data[AHEAD], split(impl)))
        return step(state, *batches[0])

    return Loop(waiting, turn, copies)


def restored(impl: Implementation, cluster: Cluster) -> Loop:
    """A state of the host is put on all devices, and trained."""
    _, step = trained(impl, cluster)
    rows = rows_of(cluster)
    first = batch(impl, cluster, 1)

    def on_the_host() -> Any:
        return {name: unaligned(initial(rows, np)) for name in ("items", "users")}

    def turn(state: Any) -> Any:
        there = jax.device_put(state, whole(impl))
        return there, step(there, *first)

    return Loop(on_the_host, turn, lambda both: copies(both[1]))


def first_shard(impl: Implementation, cluster: Cluster) -> Loop:
    """Read one copy of a replicated state on its device."""
    before, _ = trained(impl, cluster)

    def step(state: Any) -> Any:
        return jax.tree.map(lambda x: x.addressable_shards[0].data, state)

    return Loop(before, step, copies)


# --- A table that is only read


def score(table: Any, x: Any) -> Any:
    """The sums over all rows of what a table makes of their features."""
    return (x @ table.sum(0)).sum(0)


def each_copy(scores: Any) -> Any:
    """This process's copies of the scores."""
    return np.stack([np.asarray(shard.data) for shard in scores.addressable_shards])


def predictor(impl: Implementation, cluster: Cluster) -> tuple[Any, Any]:
    """A function that scores a replicated table, which in_shardings asks for, and its features."""
    copied, rows = whole(impl), split(impl)
    predict = jax.jit(score, in_shardings=(copied, rows), out_shardings=copied)
    return predict, sharded(impl, cluster.mine(features(cluster)))


def whole_numpy(impl: Implementation, cluster: Cluster) -> Loop:
    """A table goes from the host to each device."""
    rows = rows_of(cluster, 1)
    predict, x = predictor(impl, cluster)
    return Loop(lambda: unaligned(initial(rows, np)), lambda table: predict(table, x), each_copy)


def whole_array(impl: Implementation, cluster: Cluster) -> Loop:
    """A table goes from the default device to each."""
    rows = rows_of(cluster, 1)
    predict, x = predictor(impl, cluster)
    make = jax.jit(lambda: initial(rows))
    return Loop(make, lambda table: predict(table, x), each_copy)


def initialised(impl: Implementation, cluster: Cluster) -> Loop:
    """A table is made replicated, and passed on."""
    rows = rows_of(cluster, 1)
    predict, x = predictor(impl, cluster)
    init = jax.jit(lambda: initial(rows), out_shardings=whole(impl))
    return Loop(lambda: None, lambda _: predict(init(), x), each_copy)


LOOPS: Mapping[str, Sized] = table(
    Sized(
        "kept",
        f"A training step of sparse gradients, {BY_JIT},",
        keeping,
        "the old state and the new one",
        of_the_state(2),
        trained_for(2),
    ),
    Sized(
        "donated",
        f"A training step of sparse gradients with a donated state, {BY_JIT},",
        giving,
        "the state",
        of_the_state(1),
        trained_for(2),
    ),
    Sized(
        "evaluated",
        f"A trained state that a second function evaluates, {BY_JIT},",
        evaluated,
        "the state",
        of_the_state(1),
        scored_when_trained,
    ),
    Sized(
        "fetched",
        f"jax.device_get of a replicated state, {BY_JIT},",
        fetched,
        "the state, which the host shares",
        of_the_state(1),
        tables_after(1, 1),
        ONE_PROCESS,
    ),
    Sized(
        "prefetched",
        f"A training step with two batches prefetched, {BY_JIT},",
        prefetched,
        "the old state and the new one, and three batches",
        of_the_state(2 + (AHEAD + 1) * FED),
        trained_for(2),
        ONE_PROCESS,
    ),
    Sized(
        "restored",
        f"A state of the host that is replicated and trained, {BY_JIT},",
        restored,
        "a copy, the state made of it and the new one",
        and_a_copy(2),
        trained_for(1),
        ONE_PROCESS,
    ),
    Sized(
        "first-shard",
        f"The first shard of each leaf of a replicated state, {BY_JIT},",
        first_shard,
        "the state",
        of_the_state(1),
        tables_after(1, 1),
        ONE_PROCESS,
    ),
    Sized(
        "whole-numpy",
        f"Weights of NumPy with replicated in_shardings, {BY_JIT},",
        whole_numpy,
        "the weights, and a copy on each device",
        and_a_copy(1),
        scored_whole,
    ),
    Sized(
        "whole-array",
        f"Weights on one device with replicated in_shardings, {BY_JIT},",
        whole_array,
        "a copy on each device",
        of_the_state(1),
        scored_whole,
    ),
    Sized(
        "initialised-whole",
        f"Weights made replicated and passed on, {BY_JIT},",
        initialised,
        "a copy on each device",
        of_the_state(1),
        scored_whole,
    ),
)


@family(
    "idioms.jit-memory.{idiom}",
    idiom=LOOPS,
    claim=CLAIM,
    title="{idiom.text} in a loop: {idiom.there} at the peak.",
    needs=devices(2),
    fresh=True,
    expect=lambda idiom: of_jax(needed(idiom)),
)
def hold(impl: Implementation, cluster: Cluster, idiom: Sized) -> None:
    """A later step of a loop is measured, beside a known allocation."""
    weigh(impl, cluster, idiom)
