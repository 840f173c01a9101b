"""Wrappers of pmap in libraries: flax's helpers, optax's states, equinox's filter_pmap."""

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
    descend,
    descent,
    examples,
    follow,
    on_each,
    own_gradients,
    square_loss,
    zeros,
)
from conformance.sections.idioms.checks import in_a_loop
from conformance.spec.family import table
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

IN_TWO = ("optax-adam", "equinox-filter-pmap")  # whose rows are passed by `mapped_argument`
KEPT = 0.5  # of the momentum
ONE, TWO, SMALL = 0.5, 0.75, 1.0  # Adam's


def trained(place: Place, n: int) -> Any:
    """The weights on each device."""
    return on_each(place, descent(place, n)[0])


def by_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax replicates the weights, and unreplicates weights and loss after each step."""
    from flax.jax_utils import replicate, unreplicate

    step = impl.map(watch.traced(descend()), AXIS)
    weights = replicate(np.zeros(WIDTH, np.float32))

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        return jax.device_get(unreplicate((weights, loss)))

    return turn


def trained_once(place: Place, n: int) -> Any:
    """One copy of the weights and of the loss."""
    return tuple(np.asarray(one, np.float32) for one in descent(place, n))


def fed_by_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax shards each batch and puts it on the devices before it is used."""
    from flax.jax_utils import prefetch_to_device
    from flax.training.common_utils import shard

    step = impl.map(watch.traced(descend()), AXIS)
    weights = zeros(impl, cluster)
    count = 6
    parts = [examples(cluster, n) for n in range(1, count)]
    source = (shard((x.reshape(-1, WIDTH), y.reshape(-1))) for x, y in parts)
    feed = prefetch_to_device(source, 2)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = step(weights, *next(feed))
        return weights

    return turn


def metrics_by_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax takes one copy of each step's metrics off the devices, and stacks them."""
    from flax.training.common_utils import get_metrics

    step = impl.map(watch.traced(descend()), AXIS)
    weights = zeros(impl, cluster)
    kept: list[Any] = []

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        kept.append({"loss": loss})
        return get_metrics(kept)

    return turn


def metrics_on_the_host(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """One copy of each step's metrics is fetched, and NumPy stacks them."""
    step = impl.map(watch.traced(descend()), AXIS)
    weights = zeros(impl, cluster)
    kept: list[Any] = []

    def turn(n: int) -> Any:
        nonlocal weights
        weights, loss = step(weights, *batch(impl, cluster, n))
        kept.append({"loss": loss})
        first = jax.tree.map(lambda value: value.addressable_data(0).squeeze(0), kept)
        return jax.tree.map(lambda *values: np.stack(values), *jax.device_get(first))

    return turn


def losses_so_far(place: Place, n: int) -> Any:
    """The losses of all steps."""
    return {"loss": np.array([descent(place, k)[1] for k in range(1, n + 1)], np.float32)}


def state_of_flax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """flax's TrainState, with optax's momentum, is stacked leaf by leaf and mapped whole."""
    import optax
    from flax.training.train_state import TrainState

    transform = optax.sgd(RATE, momentum=KEPT)
    one = TrainState.create(apply_fn=None, params={"weights": jnp.zeros(WIDTH)}, tx=transform)

    def update(state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return square_loss(params["weights"], x, y)

        gradient = jax.lax.pmean(jax.grad(loss)(state.params), AXIS)
        return state.apply_gradients(grads=gradient)

    step = impl.map(watch.traced(update), AXIS)
    count = len(cluster.local_devices)
    state = jax.tree.map(lambda leaf: np.stack([np.asarray(leaf)] * count), one)

    def turn(n: int) -> Any:
        nonlocal state
        state = step(state, *batch(impl, cluster, n))
        return state.params, state.step

    return turn


def with_momentum(place: Place, n: int) -> Any:
    """The weights after descent with momentum, and how many steps were taken."""
    weights, moment = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(1, n + 1):
        moment = KEPT * moment + own_gradients(weights, *examples(place, k)).mean(0)
        weights = weights - RATE * moment
    steps = np.full(place.topology.devices_per_process, n, np.int32)
    return {"weights": on_each(place, weights)}, steps


def adam_of_optax(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Train with optax's Adam, whose state is made in one mapped function and updated in
    another.
    """
    import optax

    transform = optax.adam(RATE, b1=ONE, b2=TWO, eps=SMALL)

    def update(weights: Any, state: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(weights, x, y), AXIS)
        changes, state = transform.update(gradient, state, weights)
        return optax.apply_updates(weights, changes), state

    init = impl.map(watch.traced(transform.init), AXIS)
    step = impl.map(watch.traced(update), AXIS)
    weights = zeros(impl, cluster)
    state = init(weights)

    def turn(n: int) -> Any:
        nonlocal weights, state
        weights, state = step(weights, state, *batch(impl, cluster, n))
        return weights

    return turn


def adam(place: Place, n: int) -> Any:
    """The weights after so many steps of Adam."""
    weights, first, second = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(1, n + 1):
        gradient = own_gradients(weights, *examples(place, k)).mean(0)
        first = ONE * first + (1 - ONE) * gradient
        second = TWO * second + (1 - TWO) * gradient**2
        root = np.sqrt(second / (1 - TWO**k))
        weights = weights - RATE * first / (1 - ONE**k) / (root + SMALL)
    return on_each(place, weights)


def by_equinox(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """equinox's filter_pmap takes a model with a field that is no array."""
    import equinox

    class Model(equinox.Module):  # type: ignore[misc]
        weights: Any
        name: str

    def update(model: Any, x: Any, y: Any) -> Any:
        new, loss = descend()(model.weights, x, y)
        return equinox.tree_at(lambda one: one.weights, model, new), loss

    impl.select()
    mapped = equinox.filter_pmap(watch.traced(update), axis_name=AXIS)
    model = Model(zeros(impl, cluster), "linear")

    def arrays(x: Any, y: Any) -> Any:
        nonlocal model
        model, loss = mapped(model, x, y)
        return model.weights, loss

    # It makes its pmap within its first call: what that is, the outputs and the trace prove.
    step = impl.adopt(arrays, impl.name.replace("_", " "))

    def turn(n: int) -> Any:
        return step(*batch(impl, cluster, n))

    return turn


def trained_and_loss(place: Place, n: int) -> Any:
    """The weights and the loss on each device."""
    weights, loss = descent(place, n)
    return on_each(place, weights), on_each(place, loss)


GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}

LIBRARIES: Mapping[str, Idiom] = table(
    Idiom(
        "flax-replicate",
        "flax.jax_utils's replicate and unreplicate",
        by_flax,
        trained_once,
        lambda place: DESCENT,
        order=None,
        requires=("flax",),
    ),
    Idiom(
        "flax-prefetch",
        "flax's shard and prefetch_to_device",
        fed_by_flax,
        trained,
        lambda place: DESCENT,
        requires=("flax",),
    ),
    Idiom(
        "flax-metrics",
        "flax's get_metrics",
        metrics_by_flax,
        losses_so_far,
        lambda place: DESCENT,
        order=None,
        compiles=True,  # the stack of so many metrics is a program of its own
        requires=("flax",),
    ),
    Idiom(
        "metrics-on-the-host",
        "Metrics of all steps, fetched and stacked by NumPy,",
        metrics_on_the_host,
        losses_so_far,
        lambda place: DESCENT,
        order=None,
    ),
    Idiom(
        "flax-train-state",
        "flax's TrainState with optax's momentum",
        state_of_flax,
        with_momentum,
        lambda place: GRADIENT,
        requires=("flax", "optax"),
    ),
    Idiom(
        "optax-adam",
        "optax's Adam",
        adam_of_optax,
        adam,
        lambda place: GRADIENT,
        requires=("optax",),
    ),
    Idiom(
        "equinox-filter-pmap",
        "equinox.filter_pmap",
        by_equinox,
        trained_and_loss,
        lambda place: DESCENT,
        requires=("equinox",),
    ),
)


@in_a_loop(not_by_shard_map={"equinox-filter-pmap": "filter_pmap wraps jax.pmap"}).family(
    "idioms.libraries.{idiom}",
    idiom=LIBRARIES,
    claim="pmap-silence.wrappers-of-libraries",
    topologies=lambda idiom: ONE_AND_TWO if idiom.key in IN_TWO else ONE_PROCESS,
    left_out=lambda idiom: "" if idiom.key in IN_TWO else IN_ONE_PROCESS,
)
def wrap(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """Run a loop around a mapped function that a library wraps."""
    follow(impl, cluster, idiom)
