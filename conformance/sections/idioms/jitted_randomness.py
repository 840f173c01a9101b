"""Random numbers of each row without a mapped function: a vmap in a plain jit over sharded keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import WIDTH, Idiom, Turn, Watch, follow
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.generator import SEED
from conformance.sections.idioms.models import once, reduced
from conformance.sections.idioms.randomness import (
    KEPT,
    drawn_by_folds,
    drawn_by_splits,
    drawn_by_the_first,
    left_by_dropout,
    sums_of_carried,
)
from conformance.sections.idioms.sharded import sharded, split, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation


def uniform(key: Any) -> Any:
    """Numbers of one row."""
    return jax.random.uniform(key, (WIDTH,))


def split_for_rows(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """In each step the host splits its key: a new one, and one for each row."""
    draw = jax.jit(watch.traced(jax.vmap(uniform)), out_shardings=split(impl))
    key = jax.random.PRNGKey(SEED)

    def turn(n: int) -> Any:
        nonlocal key
        key, now = jax.random.split(key)
        keys = np.asarray(jax.random.split(now, cluster.topology.devices))
        return draw(sharded(impl, cluster.mine(keys)))

    return turn


def folded_with_row(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Fold the step and each row's number into one replicated key."""

    def body(key: Any, step: Any, rows: Any) -> Any:
        key = jax.random.fold_in(key, step)
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(len(rows)))
        return rows + jax.vmap(uniform)(keys)

    draw = jax.jit(watch.traced(body), out_shardings=split(impl))
    key = np.asarray(jax.random.PRNGKey(SEED))
    rows = sharded(impl, np.zeros((len(cluster.local_devices), WIDTH), np.float32))
    return lambda n: draw(key, np.int32(n), rows)


def carried(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each row carries its key in the state, which is donated, and splits it in the step."""

    def of_one(state: Any) -> Any:
        key, now = jax.random.split(state["key"])
        return {"key": key, "sum": state["sum"] + uniform(now)}

    step = jax.jit(watch.traced(jax.vmap(of_one)), out_shardings=split(impl), donate_argnums=0)
    keys = np.asarray(jax.random.split(jax.random.PRNGKey(SEED), cluster.topology.devices))
    sums = np.zeros((len(cluster.local_devices), WIDTH), np.float32)
    state = {"key": sharded(impl, cluster.mine(keys)), "sum": sharded(impl, sums)}

    def turn(n: int) -> Any:
        nonlocal state
        state = step(watch.gives(state))
        return state

    return turn


def dropped_out(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Dropout with another mask of each row and in each step, and the mean of what is left."""

    def body(key: Any, step: Any, rows: Any) -> Any:
        key = jax.random.fold_in(key, step)

        def of_one(own: Any, row: Any) -> Any:
            mask = jax.random.bernoulli(jax.random.fold_in(key, own), KEPT, row.shape)
            return jnp.where(mask, row / KEPT, 0)

        return jax.vmap(of_one)(jnp.arange(len(rows)), rows).mean(0)

    step = jax.jit(watch.traced(body), out_shardings=whole(impl))
    key = np.asarray(jax.random.PRNGKey(SEED))
    rows = sharded(impl, cluster.rows(WIDTH))
    return lambda n: step(key, np.int32(n), rows)


def of_the_first(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """All devices draw the same weights, by the first of the keys."""
    init = jax.jit(watch.traced(lambda keys: uniform(keys[0])), out_shardings=whole(impl))

    def turn(n: int) -> Any:
        return init(np.asarray(jax.random.split(jax.random.PRNGKey(n), cluster.topology.devices)))

    return turn


RANDOMNESS: Mapping[str, Idiom] = table(
    Idiom("split", "A key split for the rows", split_for_rows, drawn_by_splits),
    Idiom(
        "fold-in",
        "A key into which the number of each row is folded",
        folded_with_row,
        drawn_by_folds,
    ),
    Idiom(
        "carried",
        "A key in the donated state of each row",
        carried,
        sums_of_carried,
        gives=True,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "dropout",
        "Dropout with another mask of each row",
        dropped_out,
        once(left_by_dropout),
        reduced(WIDTH),
    ),
    Idiom(
        "of-the-first",
        "Weights that all devices draw by one key",
        of_the_first,
        once(drawn_by_the_first),
        topologies=ONE_PROCESS,
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=RANDOMNESS, left_out=of_the_mapped)
def draw(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a plain jit that draws for each row."""
    follow(impl, cluster, idiom)
