"""Recipes of libraries without a mapped function: flax, optax, equinox and dm-haiku in a plain jit.

What their helpers for pmap did, a sharding does: a state is replicated by `jax.device_put`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    DESCENT,
    FLOAT_BYTES,
    IN_ONE_PROCESS,
    RATE,
    WIDTH,
    Idiom,
    Program,
    Turn,
    Watch,
    examples,
    follow,
)
from conformance.sections.idioms import libraries as wrapped
from conformance.sections.idioms import recipes as mapped
from conformance.sections.idioms.checks import in_a_jit
from conformance.sections.idioms.jitted import ZERO, descend, mean_loss
from conformance.sections.idioms.model_recipes import with_mean
from conformance.sections.idioms.models import KEPT, KERNEL, once, reduced
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation

# Whose mapped programs are run in one process.
ALONE = ("flax-pad-shard-unpad", "flax-metrics", "flax-train-state")


# --- flax -----------------------------------------------------------------------------------------


def padded_by_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax pads a batch that does not divide, shards its axis of devices, and drops what it
    added."""
    from flax.jax_utils import pad_shard_unpad

    copied, rows = whole(impl), split(impl)
    predict = jax.jit(
        watch.traced(lambda kernel, x: x @ kernel), in_shardings=(copied, rows), out_shardings=rows
    )
    padded = pad_shard_unpad(predict)
    return lambda n: padded(KERNEL, mapped.features(cluster, n))


def stacked_metrics(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The metrics of each step are fetched and stacked on the host: get_metrics is for pmap's."""
    step = jax.jit(watch.traced(descend), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))
    kept: list[Any] = []

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *sharded_batch(impl, cluster, n))
        kept.append({"loss": loss})
        return jax.tree.map(lambda *losses: np.stack(losses), *jax.device_get(kept))

    return turn


def state_of_flax(show: Callable[[Any, Any], Any], **options: Any) -> Program:
    """flax's TrainState, with optax's momentum, is replicated; a step also returns
    `show(state, loss)`."""

    def program(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        import optax
        from flax.training.train_state import TrainState

        transform = optax.sgd(RATE, momentum=KEPT)
        one = TrainState.create(apply_fn=None, params={"weights": jnp.zeros(WIDTH)}, tx=transform)

        def update(state: Any, x: Any, y: Any) -> Any:
            def loss(params: Any) -> Any:
                return mean_loss(params["weights"], x, y)

            value, gradient = jax.value_and_grad(loss)(state.params)
            new = state.apply_gradients(grads=gradient)
            return new, show(new, value)

        step = jax.jit(watch.traced(update), out_shardings=whole(impl), **options)
        state = jax.device_put(one, whole(impl))

        def turn(n: int) -> Any:
            nonlocal state
            state, shown = step(watch.gives(state), *sharded_batch(impl, cluster, n))
            return shown

        return turn

    return program


# --- optax ----------------------------------------------------------------------------------------


def updates_by(transform: Any, spoiled: bool = False) -> Any:
    """A loop of one of optax's transformations, its state made under jit; one step is `spoiled`."""

    def program(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        import optax

        made = transform(optax)

        def update(weights: Any, state: Any, x: Any, y: Any) -> Any:
            gradient = jax.grad(mean_loss)(weights, x, y)
            changes, state = made.update(gradient, state, weights)
            return optax.apply_updates(weights, changes), state

        init = jax.jit(watch.traced(made.init), out_shardings=whole(impl))
        step = jax.jit(watch.traced(update), out_shardings=whole(impl))
        weights = jax.device_put(ZERO, whole(impl))
        state = init(weights)

        def turn(n: int) -> Any:
            nonlocal weights, state
            x, y = examples(cluster, n)
            if spoiled and n == mapped.BAD_STEP:
                y[-1] = np.nan
            rows = [sharded(impl, cluster.mine(part)) for part in (x, y)]
            weights, state = step(weights, state, *rows)
            return weights

        return turn

    return program


# --- equinox, dm-haiku ----------------------------------------------------------------------------


def trained_by_equinox(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A layer of equinox, whose arrays are replicated and whose other fields are closed over."""
    import equinox
    import optax

    transform = optax.sgd(RATE, momentum=KEPT)
    layer = equinox.nn.Linear(WIDTH, "scalar", use_bias=False, key=jax.random.PRNGKey(0))
    layer = equinox.tree_at(lambda one: one.weight, layer, jnp.zeros((1, WIDTH)))
    arrays, rest = equinox.partition(layer, equinox.is_inexact_array)

    def update(arrays: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(arrays: Any) -> Any:
            model = equinox.combine(arrays, rest)
            return ((jax.vmap(jax.vmap(model))(x) - y) ** 2).mean()

        value, gradient = equinox.filter_value_and_grad(loss)(arrays)
        changes, state = transform.update(gradient, state, arrays)
        return equinox.apply_updates(arrays, changes), state, value

    step = jax.jit(watch.traced(update), out_shardings=whole(impl))
    state = jax.device_put((arrays, transform.init(arrays)), whole(impl))

    def turn(n: int) -> Any:
        nonlocal state
        *state, loss = step(*state, *sharded_batch(impl, cluster, n))
        return state[0].weight, loss

    return turn


def trained_by_haiku(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A linear layer and a running mean of its inputs, both made under jit."""
    import haiku

    def forward(x: Any) -> Any:
        mean = haiku.get_state("mean", [WIDTH], init=jnp.zeros)
        haiku.set_state("mean", (mean + x.mean((0, 1))) / 2)
        linear = haiku.Linear(1, with_bias=False, w_init=haiku.initializers.Constant(0.0))
        return linear(x)[..., 0]

    network = haiku.transform_with_state(forward)

    def update(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            prediction, new = network.apply(params, state, None, x)
            return ((prediction - y) ** 2).mean(), new

        (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        params = jax.tree.map(lambda one, change: one - RATE * change, params, gradient)
        return params, new, value

    init = jax.jit(watch.traced(network.init), out_shardings=whole(impl))
    step = jax.jit(watch.traced(update), out_shardings=whole(impl))
    kept = init(np.asarray(jax.random.PRNGKey(0)), sharded_batch(impl, cluster, 1)[0])

    def turn(n: int) -> Any:
        nonlocal kept
        *kept, loss = step(*kept, *sharded_batch(impl, cluster, n))
        params, state = kept
        return params["linear"]["w"], state["~"]["mean"], loss

    return turn


LIBRARIES: Mapping[str, Idiom] = table(
    Idiom(
        "flax-pad-shard-unpad",
        "An evaluation by flax's pad_shard_unpad",
        padded_by_flax,
        lambda place, n: mapped.features(place, n) @ KERNEL,
        order=None,
        requires=("flax",),
    ),
    Idiom(
        "flax-metrics",
        "Losses fetched and stacked on the host",
        stacked_metrics,
        wrapped.losses_so_far,
        lambda place: DESCENT,
        order=None,
    ),
    Idiom(
        "flax-train-state",
        "flax's TrainState with optax's momentum",
        # A TrainState counts its steps with a Python number.
        state_of_flax(lambda state, loss: (state.params, jnp.asarray(state.step, jnp.int32))),
        once(wrapped.with_momentum),
        reduced(WIDTH),
        requires=("flax", "optax"),
    ),
    Idiom(
        "flax-replicated-state",
        "flax's TrainState, replicated and donated,",
        state_of_flax(lambda state, loss: (state.params, loss), donate_argnums=0),
        once(mapped.with_momentum),
        lambda place: DESCENT,
        gives=True,
        requires=("flax", "optax"),
    ),
    Idiom(
        "optax-adam",
        "optax's Adam",
        updates_by(
            lambda optax: optax.adam(RATE, b1=wrapped.ONE, b2=wrapped.TWO, eps=wrapped.SMALL)
        ),
        once(wrapped.adam),
        reduced(WIDTH),
        requires=("optax",),
    ),
    Idiom(
        "optax-multi-steps",
        "optax's MultiSteps",
        updates_by(lambda optax: optax.MultiSteps(optax.sgd(RATE), 2)),
        once(mapped.every_second),
        reduced(WIDTH),
        requires=("optax",),
    ),
    Idiom(
        "optax-apply-if-finite",
        "optax's apply_if_finite",
        updates_by(lambda optax: optax.apply_if_finite(optax.sgd(RATE), 3), spoiled=True),
        once(mapped.all_but_the_bad),
        reduced(WIDTH),
        requires=("optax",),
    ),
    Idiom(
        "equinox-partition",
        "A layer of equinox, trained by optax",
        trained_by_equinox,
        once(mapped.layer),
        lambda place: DESCENT,
        requires=("equinox", "optax"),
    ),
    Idiom(
        "haiku-state",
        "A network of dm-haiku with a running mean",
        trained_by_haiku,
        once(with_mean),
        lambda place: {"all-reduce": (2 * WIDTH + 1) * FLOAT_BYTES},
        requires=("dm-haiku",),
    ),
)


@in_a_jit().family(
    "idioms.jit.{idiom}",
    idiom=LIBRARIES,
    topologies=lambda idiom: ONE_PROCESS if idiom.key in ALONE else ONE_AND_TWO,
    left_out=lambda idiom: IN_ONE_PROCESS if idiom.key in ALONE else "",
)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a plain jit, written as the library's users do."""
    follow(impl, cluster, idiom)
