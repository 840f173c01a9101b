"""Recipes of model libraries: dm-haiku's state averaged in a map, equinox's filter_shard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    descent,
    examples,
    follow,
    mapped_argument,
    on_each,
)
from conformance.sections.idioms.checks import OTHER_TITLES, in_a_loop
from conformance.sections.idioms.sharded import sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

FILTER_SHARD = "equinox-filter-shard"


# --- dm-haiku -------------------------------------------------------------------------------------


def trained_by_haiku(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A linear layer and a running mean of its inputs, both made in a map; gradients and state are
    averaged.
    """
    import haiku

    def forward(x: Any) -> Any:
        mean = haiku.get_state("mean", [WIDTH], init=jnp.zeros)
        haiku.set_state("mean", (mean + x.mean(0)) / 2)
        linear = haiku.Linear(1, with_bias=False, w_init=haiku.initializers.Constant(0.0))
        return linear(x)[:, 0]

    network = haiku.transform_with_state(forward)

    def update(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            prediction, new = network.apply(params, state, None, x)
            return ((prediction - y) ** 2).mean(), new

        (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        value, new, gradient = jax.lax.pmean((value, new, gradient), AXIS)
        params = jax.tree.map(lambda one, change: one - RATE * change, params, gradient)
        return params, new, value

    init = impl.map(watch.traced(network.init), AXIS)
    step = impl.map(watch.traced(update), AXIS)
    keys = np.stack([np.asarray(jax.random.PRNGKey(0))] * len(cluster.local_devices))
    kept = init(mapped_argument(impl, keys), batch(impl, cluster, 1)[0])

    def turn(n: int) -> Any:
        nonlocal kept
        *kept, loss = step(*kept, *batch(impl, cluster, n))
        params, state = kept
        return params["linear"]["w"], state["~"]["mean"], loss

    return turn


def with_mean(place: Place, n: int) -> Any:
    """The layer's weights, the running mean over all devices' inputs, and the loss."""
    weights, loss = descent(place, n)
    mean = np.zeros(WIDTH)
    for k in range(1, n + 1):
        mean = (mean + examples(place, k)[0].mean((0, 1))) / 2
    return on_each(place, weights[:, None]), on_each(place, mean), on_each(place, loss)


# --- equinox --------------------------------------------------------------------------------------


def sharded_by_equinox(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """filter_shard puts a model on all devices and keeps it there in a filter_jit, which donates
    it.
    """
    import equinox

    model = equinox.nn.Linear(WIDTH, "scalar", use_bias=False, key=jax.random.PRNGKey(0))
    model = equinox.tree_at(lambda one: one.weight, model, jnp.zeros((1, WIDTH)))
    copied, rows = whole(impl), split(impl)

    def loss(model: Any, x: Any, y: Any) -> Any:
        return ((jax.vmap(jax.vmap(model))(x) - y) ** 2).mean()

    def update(model: Any, x: Any, y: Any) -> Any:
        model = equinox.filter_shard(model, copied)
        x, y = equinox.filter_shard((x, y), rows)
        value, gradient = equinox.filter_value_and_grad(loss)(model, x, y)
        model = equinox.apply_updates(model, jax.tree.map(lambda one: -RATE * one, gradient))
        return equinox.filter_shard((model, value), copied)

    step = equinox.filter_jit(watch.traced(update), donate="all")
    model = equinox.filter_shard(model, copied)

    def turn(n: int) -> Any:
        nonlocal model
        model, value = step(model, *sharded_batch(impl, cluster, n))
        return model.weight, value

    return turn


def trained_once(place: Place, n: int) -> Any:
    """The layer's weight and the loss, once."""
    weights, loss = descent(place, n)
    return weights[None].astype(np.float32), np.float32(loss)


MODELS: Mapping[str, Idiom] = table(
    Idiom(
        "haiku-averaged-state",
        "A network of dm-haiku whose state is averaged",
        trained_by_haiku,
        with_mean,
        lambda place: {"all-reduce": (2 * WIDTH + 1) * FLOAT_BYTES},
        requires=("dm-haiku",),
    ),
    Idiom(
        FILTER_SHARD,
        "A layer of equinox under filter_shard and filter_jit",
        sharded_by_equinox,
        trained_once,
        lambda place: DESCENT,
        order=None,
        requires=("equinox",),
    ),
)


@in_a_loop(titles=OTHER_TITLES, maps_nothing={FILTER_SHARD}).family(
    "idioms.recipes.{idiom}", idiom=MODELS, claim="pmap-silence.wrappers-of-libraries"
)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a map or a jit, written as the library's users do."""
    follow(impl, cluster, idiom)
