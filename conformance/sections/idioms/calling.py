"""Arguments and wrappers: static flags and callables, long in_axes, decorators and methods."""

from __future__ import annotations

import functools
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
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation, Mapped

P = jax.sharding.PartitionSpec
LABEL = "jit(shard_map)"


def static_map(
    impl: Implementation,
    body: Body,
    *,
    static: int,
    in_axes: tuple[int | None, ...],
    **options: Any,
) -> Mapped:
    """A map with a static argument: under shard_map the jit has it, and the body is closed over it.

    `in_axes` has None in the static argument's place, as pmap wants it.
    """
    if impl.is_pmap:
        static_argnums = {"static_broadcasted_argnums": (static,)}  # type: dict[str, Any]
        return impl.map(body, "batch", in_axes=in_axes, **static_argnums, **options)
    mesh = impl.mesh("batch")
    axes = [axis for at, axis in enumerate(in_axes) if at != static]

    def whole(*args: Any) -> Any:
        def one(*blocks: Any) -> Any:
            rows = [
                block if axis is None else jax.tree.map(lambda x: x.squeeze(0), block)
                for block, axis in zip(blocks, axes, strict=True)
            ]
            result = body(*rows[:static], args[static], *rows[static:])
            return jax.tree.map(lambda x: x[None], result)

        specs = tuple(P() if axis is None else P("batch") for axis in axes)
        mapped = jax.shard_map(one, mesh=mesh, in_specs=specs, out_specs=P("batch"))
        return mapped(*args[:static], *args[static + 1 :])

    return impl.adopt(jax.jit(whole, static_argnums=(static,), **options), LABEL)


def alternating(begin: Callable[[Implementation, Cluster], Any]) -> Program:
    """A static flag says whether the step trains or evaluates; the steps take turns."""
    update = descend()

    def body(weights: Any, x: Any, y: Any, train: bool) -> Any:
        new, loss = update(weights, x, y)
        return (new if train else weights), loss

    def static_flag(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        step = static_map(impl, watch.traced(body), static=3, in_axes=(0, 0, 0, None))
        weights = begin(impl, cluster)

        def turn(n: int) -> Any:
            nonlocal weights
            weights, _ = step(weights, *batch(impl, cluster, n), n % 2 == 1)
            return weights

        return turn

    return static_flag


def placed_zeros(impl: Implementation, cluster: Cluster) -> Any:
    """Return replicated initial weights, as the output of a mapped function."""
    return impl.map(lambda x: x, "batch")(zeros(impl, cluster))


def descended_in_odd_steps(place: Place, n: int) -> Any:
    """Descent in each other step."""
    weights = np.zeros(WIDTH)
    for k in range(1, n + 1, 2):
        weights = weights - RATE * own_gradients(weights, *examples(place, k)).mean(0)
    return on_each(place, weights)


def static_callable(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The loss is a function that the step is given first, as a static argument."""

    def body(loss: Body, weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(loss)(weights, x, y), "batch")
        return weights - RATE * gradient

    step = static_map(impl, watch.traced(body), static=0, in_axes=(None, 0, 0, 0))
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(square_loss, weights, *batch(impl, cluster, n))
        return weights

    return turn


def trained(place: Place, n: int) -> Any:
    """The weights on each device."""
    return on_each(place, descent(place, n)[0])


def many_arguments(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """in_axes for each of six arguments: donated state, whole rate and mask, static name."""

    def body(weights: Any, moment: Any, rate: Any, x: Any, y: Any, kind: str) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(weights, x, y), "batch")
        moment = gradient + (moment / 2 if kind == "momentum" else 0)
        return weights - rate * moment, moment

    step = static_map(
        impl,
        watch.traced(body),
        static=5,
        in_axes=(0, 0, None, 0, 0, None),
        donate_argnums=(0, 1),
    )
    weights, moment = placed_zeros(impl, cluster), placed_zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights, moment
        watch.gives((weights, moment))
        x, y = batch(impl, cluster, n)
        weights, moment = step(weights, moment, np.float32(RATE), x, y, "momentum")
        return weights, moment

    return turn


def with_momentum(place: Place, n: int) -> Any:
    """Descent with momentum."""
    weights, moment = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(1, n + 1):
        moment = moment / 2 + own_gradients(weights, *examples(place, k)).mean(0)
        weights = weights - RATE * moment
    return on_each(place, weights), on_each(place, moment)


def decorated(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The step is decorated: `@functools.partial(jax.pmap, axis_name=...)`."""
    if impl.is_pmap:
        impl.select()

        @functools.partial(jax.pmap, axis_name="batch")
        @watch.traced
        def step(weights: Any, x: Any, y: Any) -> Any:
            return descend()(weights, x, y)

        update = impl.adopt(step)
    else:
        rows = P("batch")

        on_devices: Any = functools.partial(
            jax.shard_map, mesh=impl.mesh("batch"), in_specs=(rows, rows, rows), out_specs=rows
        )

        def blocks(weights: Any, x: Any, y: Any) -> Any:
            new, loss = descend()(weights[0], x[0], y[0])
            return new[None], loss[None]

        update = impl.adopt(jax.jit(on_devices(watch.traced(blocks))), LABEL)
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = update(weights, *batch(impl, cluster, n))
        return weights

    return turn


class Trainer:
    """A model whose step is a bound method, mapped once when it is made."""

    def __init__(self, impl: Implementation, watch: Watch, rate: float) -> None:
        self.rate = rate
        self.step = impl.map(watch.traced(self._step), "batch")

    def _step(self, weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(self.loss)(weights, x, y), "batch")
        return weights - self.rate * gradient

    def loss(self, weights: Any, x: Any, y: Any) -> Any:
        """The square loss, as a method."""
        return jnp.mean((x @ weights - y) ** 2)


def methods(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The step is a method of a class, which reads the rate off its object."""
    trainer = Trainer(impl, watch, RATE)
    weights = zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = trainer.step(weights, *batch(impl, cluster, n))
        return weights

    return turn


def static_self(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The function of a class is mapped with its object as a static argument."""

    class Model:
        rate = RATE

    def body(self: Model, weights: Any, x: Any, y: Any) -> Any:
        gradient = jax.lax.pmean(jax.grad(square_loss)(weights, x, y), "batch")
        return weights - self.rate * gradient

    step = static_map(impl, watch.traced(body), static=0, in_axes=(None, 0, 0, 0))
    model, weights = Model(), zeros(impl, cluster)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(model, weights, *batch(impl, cluster, n))
        return weights

    return turn


GRADIENT = {"all-reduce": WIDTH * FLOAT_BYTES}

CALLING: Mapping[str, Idiom] = table(
    Idiom(
        "static-flag",
        "A step with a static flag that alternates between both values,",
        alternating(zeros),
        descended_in_odd_steps,
        lambda place: DESCENT,
    ),
    Idiom(
        "static-flag-placed",
        "A step with a static flag whose state comes from another mapped function",
        alternating(placed_zeros),
        descended_in_odd_steps,
        lambda place: DESCENT,
    ),
    Idiom(
        "static-callable",
        "A step whose loss function is a static argument",
        static_callable,
        trained,
        lambda place: GRADIENT,
    ),
    Idiom(
        "many-arguments",
        "A step of six arguments, mapped, static, donated and whole (in_axes=None),",
        many_arguments,
        with_momentum,
        lambda place: GRADIENT,
        gives=True,
    ),
    Idiom(
        "decorator",
        "A step decorated with `functools.partial(jax.pmap, ...)`",
        decorated,
        trained,
        lambda place: DESCENT,
    ),
    Idiom(
        "method",
        "A step that is a method of a class",
        methods,
        trained,
        lambda place: GRADIENT,
    ),
    Idiom(
        "static-self",
        "A step whose object is a static argument",
        static_self,
        trained,
        lambda place: GRADIENT,
    ),
)


@in_a_loop().family(
    "idioms.calling.{idiom}",
    idiom=CALLING,
    claim="pmap-silence.training-step",
    topologies=ONE_PROCESS,
    left_out=IN_ONE_PROCESS,
)
def call(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """Run a loop around a mapped function that is called in one of these ways."""
    follow(impl, cluster, idiom)
