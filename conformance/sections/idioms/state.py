"""A replicated state: read in each step, made in a mapped function, saved and restored as NumPy
arrays.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    DESCENT,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    copies,
    descend,
    descent,
    examples,
    follow,
    mine,
    on_each,
    zeros,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation


def trained(place: Place, n: int) -> Any:
    """The weights on each device."""
    return on_each(place, descent(place, n)[0])


def trained_on_the_host(place: Place, n: int) -> Any:
    """One copy of the weights and of the loss."""
    return tuple(np.asarray(one, np.float32) for one in descent(place, n))


def trained_and_read(place: Place, n: int) -> Any:
    """The weights on each device, and one copy of the loss."""
    weights, loss = descent(place, n)
    return on_each(place, weights), np.float32(loss)


def unreplicated(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """After each step the first copy of the state is fetched, as before a summary is written."""
    step = impl.map(watch.traced(descend()), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return jax.device_get(jax.tree.map(lambda x: x[0], (weights, loss)))

    return turn


def off_the_shard(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The first copy is read off this process's first shard, without an index into the array."""
    step = impl.map(watch.traced(descend()), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return jax.tree.map(
            lambda x: np.asarray(x.addressable_shards[0].data).squeeze(0), (weights, loss)
        )

    return turn


def read_as_a_number(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The loss is logged as a Python number: `float(loss[0])`."""
    step = impl.map(watch.traced(descend()), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return weights, np.float32(float(loss[0]))

    return turn


def initialised_whole(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Make the weights with out_axes=None and pass them with in_axes=None."""

    def initial(features: Any) -> Any:
        return jnp.arange(features.shape[-1], dtype=features.dtype) + 1

    init = impl.map(watch.traced(initial), "batch", out_axes=None)
    predict = impl.map(watch.traced(lambda w, x: x @ w), "batch", in_axes=(None, 0))

    def turn(n: int) -> Any:
        features, _ = batch(impl, cluster, n)
        return predict(init(features), features)

    return turn


def predicted(place: Place, n: int) -> Any:
    """The predictions of weights 1, 2, 3."""
    features, _ = examples(place, n)
    return mine(place, features @ np.arange(1, WIDTH + 1))


def initialised_on_each(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Make the same state on each device; the first step takes a mapped function's own output."""

    def initial(features: Any) -> Any:
        return jnp.zeros(features.shape[-1:], features.dtype)

    init = impl.map(watch.traced(initial), "batch")
    step = impl.map(watch.traced(descend()), "batch")
    weights = init(batch(impl, cluster, 1)[0])

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = step(weights, *batch(impl, cluster, n))
        return weights

    return turn


def saved(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """After each step the state is saved by NumPy, restored, and replicated again."""
    step = impl.map(watch.traced(descend()), "batch")
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        file = io.BytesIO()
        np.savez(file, weights=jax.device_get(weights)[0])
        file.seek(0)
        restored = copies(impl, cluster, np.load(file)["weights"])
        weights, _ = step(restored, *batch(impl, cluster, n))
        return weights

    return turn


STATE: Mapping[str, Idiom] = table(
    Idiom(
        "unreplicated",
        "A replicated state whose `x[0]` is fetched after each step",
        unreplicated,
        trained_on_the_host,
        lambda place: DESCENT,
        order=None,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "off-the-shard",
        "A replicated state whose first shard is read after each step",
        off_the_shard,
        trained_on_the_host,
        lambda place: DESCENT,
        order=None,
    ),
    Idiom(
        "logged",
        "A loss logged as `float(loss[0])`",
        read_as_a_number,
        trained_and_read,
        lambda place: DESCENT,
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "initialised-whole",
        "Weights made by a mapped function with out_axes=None and passed on with in_axes=None",
        initialised_whole,
        predicted,
    ),
    Idiom(
        "initialised-on-each",
        "Weights made on each device by a mapped function",
        initialised_on_each,
        trained,
        lambda place: DESCENT,
    ),
    Idiom(
        "saved",
        "A state saved, restored and replicated as NumPy arrays",
        saved,
        trained,
        lambda place: DESCENT,
        topologies=ONE_PROCESS,
    ),
)


@in_a_loop().family("idioms.state.{idiom}", idiom=STATE, claim="pmap-silence.replicated-state")
def keep(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a state that is replicated."""
    follow(impl, cluster, idiom)
