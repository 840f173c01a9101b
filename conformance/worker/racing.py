"""Time contenders in turn, all processes in lock-step. Runs in the worker."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from conformance.spec.names import SECONDS
from conformance.worker.compiling import compiled_as_by_default
from conformance.worker.protocols import Cluster, Mapped

UNCOUNTED = 3  # rounds of each contender that fill its caches
SHOWN = 4  # elements of each leaf that are compared with the model


def race(
    cluster: Cluster,
    contenders: Mapping[str, Callable[[], Any]],
    rounds: int,
    shown: Callable[[Any], Any] | None = None,
) -> None:
    """Record a step per contender, with the seconds of `rounds` calls, which take turns.

    The step's value is `shown` of what the last uncounted call returned, by default its beginning;
    the seconds run from when all processes have met until this one's result is ready. If one
    raises, none is timed.
    """
    with compiled_as_by_default():
        _race(cluster, contenders, rounds, shown or starts_of)


def _race(
    cluster: Cluster,
    contenders: Mapping[str, Callable[[], Any]],
    rounds: int,
    shown: Callable[[Any], Any],
) -> None:
    steps = []
    for name, function in contenders.items():
        for _ in range(UNCOUNTED - 1):
            _quietly(function)
        cluster.step(name, lambda f=function: shown(jax.block_until_ready(f())))
        steps.append(cluster.steps[-1])
    if any(step["outcome"] != "returned" for step in steps):
        return
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders.items())
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, function in order:
                cluster.meet()
                began = time.perf_counter()
                jax.block_until_ready(function())
                taken[name].append(time.perf_counter() - began)
            order.append(order.pop(0))  # each goes first in turn
    finally:
        gc.enable()
    for step, name in zip(steps, contenders, strict=True):
        step["extra"][SECONDS] = taken[name]


def witnessed(mapped: Mapped, *args: Any) -> Any:
    """Return JAX's own function of a map that is called once, for the cell to show what it maps.

    The call compiles it, so it is compiled as a user's is: it would keep what it has in the race.
    """
    with compiled_as_by_default():
        mapped(*args)
    return mapped.function


def starts_of(tree: Any) -> Any:
    """Return `start_of` each leaf."""
    return jax.tree.map(start_of, tree)


def start_of(leaf: Any) -> Any:
    """Return the first elements of the first shard of this process, as NumPy."""
    if isinstance(leaf, jax.Array):
        leaf = leaf.addressable_shards[0].data
    return np.asarray(leaf).reshape(-1)[:SHOWN]


def _quietly(function: Callable[[], Any]) -> None:
    """Call a function whose error a following step will show."""
    try:
        jax.block_until_ready(function())
    except Exception:
        return
