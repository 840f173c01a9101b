"""Whole recipes of libraries around a map: flax, optax, equinox and chex."""

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
    IN_ONE_PROCESS,
    RATE,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    copies,
    examples,
    follow,
    mapped_argument,
    on_each,
    own_gradients,
    own_losses,
    square_loss,
    zeros,
)
from conformance.sections.idioms.checks import OTHER_TITLES, in_a_loop
from conformance.sections.idioms.models import KEPT, KERNEL
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

LEFT_OVER = 3  # rows that the last batch of an evaluation lacks
BAD_STEP = 2  # in which one device has no finite gradient
VARIANT = "chex-pmap-variant"
# Each process would evaluate the same rows; chex counts the devices of all processes.
ALONE = ("flax-pad-shard-unpad", VARIANT)

GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}


# --- flax -----------------------------------------------------------------------------------------


def padded_by_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax pads a batch that does not divide, maps it, and drops what it added."""
    from flax.jax_utils import pad_shard_unpad

    predict = impl.map(watch.traced(lambda kernel, x: x @ kernel), AXIS, in_axes=(None, 0))
    padded = pad_shard_unpad(predict)
    return lambda n: padded(KERNEL, features(cluster, n))


def features(place: Place, n: int) -> Any:
    """The rows of an evaluation, a few less than the devices could take."""
    return examples(place, n)[0].reshape(-1, WIDTH)[:-LEFT_OVER]


def replicated_by_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax replicates a TrainState with optax's momentum, which each step donates."""
    import optax
    from flax.jax_utils import replicate
    from flax.training.train_state import TrainState

    transform = optax.sgd(RATE, momentum=KEPT)
    one = TrainState.create(apply_fn=None, params={"weights": jnp.zeros(WIDTH)}, tx=transform)

    def update(state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return square_loss(params["weights"], x, y)

        value, gradient = jax.value_and_grad(loss)(state.params)
        value, gradient = jax.lax.pmean((value, gradient), AXIS)
        return state.apply_gradients(grads=gradient), value

    step = impl.map(watch.traced(update), AXIS, donate_argnums=(0,))
    state = jax.tree.map(lambda leaf: mapped_argument(impl, leaf), replicate(one))

    def turn(n: int) -> Any:
        nonlocal state
        state, loss = step(watch.gives(state), *batch(impl, cluster, n))
        return state.params, loss

    return turn


def with_momentum(place: Place, n: int) -> Any:
    """The weights after descent with momentum, and the loss before the last step."""
    weights, moment, loss = np.zeros(WIDTH), np.zeros(WIDTH), 0.0
    for k in range(1, n + 1):
        loss = own_losses(weights, *examples(place, k)).mean()
        moment = KEPT * moment + own_gradients(weights, *examples(place, k)).mean(0)
        weights = weights - RATE * moment
    return {"weights": on_each(place, weights)}, on_each(place, loss)


# --- optax ----------------------------------------------------------------------------------------


def updates_by(transform: Any, spoiled: bool = False) -> Any:
    """A loop of one of optax's transformations, its state made in a map; one step is `spoiled`."""

    def program(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        import optax

        made = transform(optax)

        def update(weights: Any, state: Any, x: Any, y: Any) -> Any:
            gradient = jax.lax.pmean(jax.grad(square_loss)(weights, x, y), AXIS)
            changes, state = made.update(gradient, state, weights)
            return optax.apply_updates(weights, changes), state

        init = impl.map(watch.traced(made.init), AXIS)
        step = impl.map(watch.traced(update), AXIS)
        weights = zeros(impl, cluster)
        state = init(weights)

        def turn(n: int) -> Any:
            nonlocal weights, state
            x, y = examples(cluster, n)
            if spoiled and n == BAD_STEP:
                y[-1] = np.nan
            rows = [mapped_argument(impl, cluster.mine(part)) for part in (x, y)]
            weights, state = step(weights, state, *rows)
            return weights

        return turn

    return program


def every_second(place: Place, n: int) -> Any:
    """Descent by the mean gradient of two steps, taken at the end of the second."""
    weights, total = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(1, n + 1):
        total = total + own_gradients(weights, *examples(place, k)).mean(0)
        if k % 2 == 0:
            weights, total = weights - RATE * total / 2, np.zeros(WIDTH)
    return on_each(place, weights)


def all_but_the_bad(place: Place, n: int) -> Any:
    """Descent without the step in which a gradient is not finite."""
    weights = np.zeros(WIDTH)
    for k in range(1, n + 1):
        if k != BAD_STEP:
            weights = weights - RATE * own_gradients(weights, *examples(place, k)).mean(0)
    return on_each(place, weights)


# --- equinox, chex -------------------------------------------------------------------------------


def trained_by_equinox(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A layer of equinox, whose arrays are mapped and whose other fields are closed over."""
    import equinox
    import optax

    transform = optax.sgd(RATE, momentum=KEPT)
    layer = equinox.nn.Linear(WIDTH, "scalar", use_bias=False, key=jax.random.PRNGKey(0))
    layer = equinox.tree_at(lambda one: one.weight, layer, jnp.zeros((1, WIDTH)))
    arrays, rest = equinox.partition(layer, equinox.is_inexact_array)

    def update(arrays: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(arrays: Any) -> Any:
            return ((jax.vmap(equinox.combine(arrays, rest))(x) - y) ** 2).mean()

        value, gradient = equinox.filter_value_and_grad(loss)(arrays)
        value, gradient = jax.lax.pmean((value, gradient), AXIS)
        changes, state = transform.update(gradient, state, arrays)
        return equinox.apply_updates(arrays, changes), state, value

    step = impl.map(watch.traced(update), AXIS)
    state = copies(impl, cluster, (arrays, transform.init(arrays)))

    def turn(n: int) -> Any:
        nonlocal state
        *state, loss = step(*state, *batch(impl, cluster, n))
        return state[0].weight, loss

    return turn


def layer(place: Place, n: int) -> Any:
    """The layer's weight, and the loss before the last step."""
    weights, loss = with_momentum(place, n)
    return weights["weights"][:, None], loss


def tested_by_chex(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A test's function under chex's variant of pmap, which takes one argument for all devices."""
    import chex

    impl.select()
    body = watch.traced(lambda x: jax.lax.psum(x, AXIS) + x)
    kept: list[Any] = []

    class Tested(chex.TestCase):  # type: ignore[misc]
        @chex.variants(with_pmap=True)  # type: ignore[untyped-decorator]
        def test(self) -> None:
            kept.append(self.variant(body, axis_name=AXIS, reduce_fn=None))

    name = next(one for one in dir(Tested) if one.startswith("test_"))
    Tested(name).debug()
    # It makes its pmap again within its first call: what that is, the outputs prove.
    step = impl.adopt(kept[0], impl.name.replace("_", " "))
    return lambda n: step(np.full(WIDTH, n, np.float32))


def summed(place: Place, n: int) -> Any:
    """The sum over all devices, and one more."""
    return on_each(place, np.full(WIDTH, n * (place.topology.devices + 1)))


RECIPES: Mapping[str, Idiom] = table(
    Idiom(
        "flax-pad-shard-unpad",
        "An evaluation by flax's pad_shard_unpad",
        padded_by_flax,
        lambda place, n: features(place, n) @ KERNEL,
        order=None,
        requires=("flax",),
    ),
    Idiom(
        "flax-replicated-state",
        "flax's TrainState, replicated by flax and donated,",
        replicated_by_flax,
        with_momentum,
        lambda place: DESCENT,
        gives=True,
        requires=("flax", "optax"),
    ),
    Idiom(
        "optax-multi-steps",
        "optax's MultiSteps",
        updates_by(lambda optax: optax.MultiSteps(optax.sgd(RATE), 2)),
        every_second,
        lambda place: GRADIENT,
        requires=("optax",),
    ),
    Idiom(
        "optax-apply-if-finite",
        "optax's apply_if_finite",
        updates_by(lambda optax: optax.apply_if_finite(optax.sgd(RATE), 3), spoiled=True),
        all_but_the_bad,
        lambda place: GRADIENT,
        requires=("optax",),
    ),
    Idiom(
        "equinox-partition",
        "A layer of equinox, trained by optax",
        trained_by_equinox,
        layer,
        lambda place: DESCENT,
        requires=("equinox", "optax"),
    ),
    Idiom(
        VARIANT,
        "chex's variant with_pmap",
        tested_by_chex,
        summed,
        lambda place: {"all-reduce": WIDTH * FLOAT_BYTES},
        requires=("chex",),
    ),
)


@in_a_loop(titles=OTHER_TITLES, not_by_shard_map={VARIANT: "chex's variant wraps jax.pmap"}).family(
    "idioms.recipes.{idiom}",
    idiom=RECIPES,
    claim="pmap-silence.wrappers-of-libraries",
    topologies=lambda idiom: ONE_PROCESS if idiom.key in ALONE else ONE_AND_TWO,
    left_out=lambda idiom: IN_ONE_PROCESS if idiom.key in ALONE else "",
)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a map, written as the library's users do."""
    follow(impl, cluster, idiom)
