"""The memory that idioms need: loops around a state that is large, and what is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.idioms import AXIS, mapped_argument
from conformance.sections.idioms.sized import (
    AHEAD,
    FED,
    Loop,
    Sized,
    and_a_copy,
    batch,
    ends_and_sum,
    factorise,
    features,
    initial,
    large_batch,
    needed,
    of_one,
    of_rows,
    of_the_state,
    rows_of,
    scored_when_trained,
    scored_whole,
    scores,
    tables_after,
    trained,
    trained_for,
    unaligned,
    weigh,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows

CLAIM = "pmap-silence.same-memory-in-a-loop"

# --- A state that is trained


def keeping(impl: Implementation, cluster: Cluster) -> Loop:
    """A training step whose state is not donated."""
    before, step = trained(impl, cluster)
    second = batch(impl, cluster, 2)
    return Loop(before, lambda state: step(state, *second), of_rows)


def giving(impl: Implementation, cluster: Cluster) -> Loop:
    """A training step whose state is donated."""
    before, step = trained(impl, cluster, donate_argnums=(0,))
    second = batch(impl, cluster, 2)
    return Loop(before, lambda state: step(state, *second), of_rows)


def fed(impl: Implementation, cluster: Cluster) -> Loop:
    """Batches lie on the devices before they are used: one is in use, and two are ahead of it."""
    before, _ = trained(impl, cluster)
    update = factorise()
    step = impl.map(lambda state, which, many: update(state, which, many.mean(-1)), AXIS)
    data = [large_batch(cluster, n) for n in range(2, 3 + AHEAD)]

    def waiting() -> Any:
        return before(), [placed(impl, cluster, one) for one in data[:AHEAD]]

    def turn(left: Any) -> Any:
        state, batches = left
        batches.append(placed(impl, cluster, data[AHEAD]))
        return step(state, *batches[0])

    return Loop(waiting, turn, of_rows)


def placed(impl: Implementation, cluster: Cluster, rows: Any) -> Any:
    """A batch on its devices, as legacy's own device_put_sharded puts it, or as device_put does.

    Legacy pmap copies what it finds in another sharding than its own.
    """
    if impl.name == LEGACY_PMAP:
        put, where = jax.device_put_sharded, cluster.local_devices
        return put(list(rows[0]), where), put(list(rows[1]), where)
    return jax.device_put(rows, impl.sharding(AXIS))


def replicated(impl: Implementation, cluster: Cluster) -> Loop:
    """Stack a state on the host, and pass it to the mapped function that trains it."""
    _, step = trained(impl, cluster)
    rows, count = rows_of(cluster), len(cluster.local_devices)
    first = batch(impl, cluster, 1)

    def restored() -> Any:
        return {"items": initial(rows, np), "users": initial(rows, np)}

    def turn(state: Any) -> Any:
        stacked = jax.tree.map(lambda leaf: unaligned(np.stack([leaf] * count)), state)
        return stacked, step(stacked, *first)

    return Loop(restored, turn, lambda both: of_rows(both[1]))


# --- A copy of it


def indexed(impl: Implementation, cluster: Cluster) -> Loop:
    """One copy of a replicated state, by an index."""
    before, _ = trained(impl, cluster)
    return Loop(before, lambda state: jax.tree.map(lambda x: x[0], state), of_one)


def row_fetched(impl: Implementation, cluster: Cluster) -> Loop:
    """One copy of a replicated state, by an index, on the host."""
    before, _ = trained(impl, cluster)

    def step(state: Any) -> Any:
        return jax.device_get(jax.tree.map(lambda x: x[0], state))

    return Loop(before, step, of_one)


def first_shard(impl: Implementation, cluster: Cluster) -> Loop:
    """Read one copy of a replicated state on its device."""
    before, _ = trained(impl, cluster)

    def step(state: Any) -> Any:
        return jax.tree.map(lambda x: x.addressable_shards[0].data, state)

    return Loop(before, step, of_rows)


def fetched(impl: Implementation, cluster: Cluster) -> Loop:
    """The whole of a replicated state, on the host."""
    before, _ = trained(impl, cluster)

    def shown(state: Any) -> Any:
        return [ends_and_sum(leaf) for leaf in jax.tree.leaves(state)]

    return Loop(before, jax.device_get, shown)


# --- States that are only read


def evaluated(impl: Implementation, cluster: Cluster) -> Loop:
    """A state that is trained by one map goes to another one over the same devices."""
    before, _ = trained(impl, cluster)
    score = scores()
    evaluate = impl.map(lambda state, x: score(state["items"], x), AXIS)
    x = mapped_argument(impl, cluster.mine(features(cluster)))
    return Loop(before, lambda state: evaluate(state, x), local_rows)


def whole_numpy(impl: Implementation, cluster: Cluster) -> Loop:
    """in_axes=(None, 0): a table goes whole from the host to each device."""
    rows = rows_of(cluster, 1)
    predict = impl.map(scores(), AXIS, in_axes=(None, 0))
    x = mapped_argument(impl, cluster.mine(features(cluster)))
    return Loop(lambda: unaligned(initial(rows, np)), lambda table: predict(table, x), local_rows)


def whole_array(impl: Implementation, cluster: Cluster) -> Loop:
    """in_axes=(None, 0): a table goes whole from the default device to each."""
    rows = rows_of(cluster, 1)
    make = jax.jit(lambda: initial(rows))
    predict = impl.map(scores(), AXIS, in_axes=(None, 0))
    x = mapped_argument(impl, cluster.mine(features(cluster)))
    return Loop(make, lambda table: predict(table, x), local_rows)


def initialised(impl: Implementation, cluster: Cluster) -> Loop:
    """Make a table with out_axes=None and pass it with in_axes=None."""
    rows = rows_of(cluster, 1)
    init = impl.map(lambda x: initial(rows), AXIS, out_axes=None)
    predict = impl.map(scores(), AXIS, in_axes=(None, 0))
    x = mapped_argument(impl, cluster.mine(features(cluster)))
    return Loop(lambda: None, lambda _: predict(init(x), x), local_rows)


# --- The table


LOOPS: Mapping[str, Sized] = table(
    Sized(
        "kept",
        "A training step of sparse gradients",
        keeping,
        "the old state and the new one",
        of_the_state(2),
        trained_for(2),
    ),
    Sized(
        "donated",
        "A training step of sparse gradients with a donated state",
        giving,
        "the state",
        of_the_state(1),
        trained_for(2),
    ),
    Sized(
        "prefetched",
        "A training step with two batches prefetched",
        fed,
        "the old state and the new one, and three batches",
        of_the_state(2 + (AHEAD + 1) * FED),
        trained_for(2),
        ONE_PROCESS,
    ),
    Sized(
        "replicated",
        "A state that is stacked on the host and trained",
        replicated,
        "a copy, the stack, the state made of it and the new one",
        and_a_copy(3),
        trained_for(1),
        ONE_PROCESS,
    ),
    Sized(
        "indexed",
        "`x[0]` of each leaf of a replicated state",
        indexed,
        "the state, and one copy once more",
        and_a_copy(1),
        tables_after(1, 1),
        ONE_PROCESS,
    ),
    Sized(
        "first-shard",
        "The first shard of each leaf of a replicated state",
        first_shard,
        "the state",
        of_the_state(1),
        tables_after(1, 1),
        ONE_PROCESS,
    ),
    Sized(
        "fetched",
        "jax.device_get of a replicated state",
        fetched,
        "the state, and its copies on the host",
        of_the_state(2),
        tables_after(1),
        ONE_PROCESS,
    ),
    Sized(
        "row-fetched",
        "jax.device_get of `x[0]` of each leaf of a replicated state",
        row_fetched,
        "the state, and one copy once more",
        and_a_copy(1),
        tables_after(1, 1),
        ONE_PROCESS,
    ),
    Sized(
        "evaluated",
        "A trained state that a second map evaluates",
        evaluated,
        "the state",
        of_the_state(1),
        scored_when_trained,
    ),
    Sized(
        "whole-numpy",
        "Weights of NumPy with in_axes=(None, 0)",
        whole_numpy,
        "the weights, and a copy on each device",
        and_a_copy(1),
        scored_whole,
    ),
    Sized(
        "whole-array",
        "Weights on one device with in_axes=(None, 0)",
        whole_array,
        "a copy on each device",
        of_the_state(1),
        scored_whole,
    ),
    Sized(
        "initialised-whole",
        "Weights that a map returns with out_axes=None, passed to another with in_axes=None,",
        initialised,
        "a copy on each device",
        of_the_state(1),
        scored_whole,
    ),
)


@family(
    "idioms.memory.{idiom}",
    idiom=LOOPS,
    claim=CLAIM,
    title="{idiom.text} in a loop: {idiom.there} at the peak.",
    needs=devices(2),
    fresh=True,
    expect=lambda idiom: everywhere(needed(idiom)),
)
def hold(impl: Implementation, cluster: Cluster, idiom: Sized) -> None:
    """A later step of a loop is measured, beside a known allocation."""
    weigh(impl, cluster, idiom)
