"""Ways to write and to call a step that is a plain jit: decorators, methods, static arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax

from conformance.sections.idioms import (
    DESCENT,
    RATE,
    WIDTH,
    Idiom,
    Program,
    Turn,
    Watch,
    follow,
)
from conformance.sections.idioms.calling import descended_in_odd_steps, trained, with_momentum
from conformance.sections.idioms.checks import in_a_jit
from conformance.sections.idioms.jitted import ZERO, descend, mean_loss
from conformance.sections.idioms.models import once, reduced
from conformance.sections.idioms.sharded import sharded_batch, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.bodies import Body
from conformance.worker.protocols import Cluster, Implementation


def put_zeros(impl: Implementation) -> Any:
    """Initial weights by device_put."""
    return jax.device_put(ZERO, whole(impl))


def made_zeros(impl: Implementation) -> Any:
    """Initial weights from another jit."""
    return jax.jit(lambda x: x, out_shardings=whole(impl))(ZERO)


def alternating(begin: Callable[[Implementation], Any]) -> Program:
    """A static flag says whether the step trains or evaluates; the steps take turns."""

    def body(weights: Any, x: Any, y: Any, train: bool) -> Any:
        new, loss = descend(weights, x, y)
        return (new if train else weights), loss

    def static_flag(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        step = jax.jit(watch.traced(body), static_argnums=3, out_shardings=whole(impl))
        weights = begin(impl)

        def turn(n: int) -> Any:
            nonlocal weights
            weights, _ = step(weights, *sharded_batch(impl, cluster, n), n % 2 == 1)
            return weights

        return turn

    return static_flag


def static_callable(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The loss is a function that the step is given first, as a static argument."""

    def body(loss: Body, weights: Any, x: Any, y: Any) -> Any:
        return weights - RATE * jax.grad(loss)(weights, x, y)

    step = jax.jit(watch.traced(body), static_argnums=0, out_shardings=whole(impl))
    weights = put_zeros(impl)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(mean_loss, weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


def many_arguments(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Six arguments: a donated state, a rate that is not, sharded examples, a static name."""

    def body(weights: Any, moment: Any, rate: Any, x: Any, y: Any, kind: str) -> Any:
        gradient = jax.grad(mean_loss)(weights, x, y)
        moment = gradient + (moment / 2 if kind == "momentum" else 0)
        return weights - rate * moment, moment

    step = jax.jit(
        watch.traced(body), static_argnums=5, donate_argnums=(0, 1), out_shardings=whole(impl)
    )
    weights, moment = put_zeros(impl), put_zeros(impl)

    def turn(n: int) -> Any:
        nonlocal weights, moment
        watch.gives((weights, moment))
        x, y = sharded_batch(impl, cluster, n)
        weights, moment = step(weights, moment, RATE, x, y, "momentum")
        return weights, moment

    return turn


def decorated(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The step is decorated: `@functools.partial(jax.jit, out_shardings=...)`."""

    @functools.partial(jax.jit, out_shardings=whole(impl))
    @watch.traced
    def step(weights: Any, x: Any, y: Any) -> Any:
        return descend(weights, x, y)

    weights = put_zeros(impl)

    def turn(n: int) -> Any:
        nonlocal weights
        weights, _ = step(weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


class Trainer:
    """A model whose step is a bound method, jitted once when it is made."""

    def __init__(self, impl: Implementation, watch: Watch, rate: float) -> None:
        self.rate = rate
        self.step = jax.jit(watch.traced(self._step), out_shardings=whole(impl))

    def _step(self, weights: Any, x: Any, y: Any) -> Any:
        return weights - self.rate * jax.grad(self.loss)(weights, x, y)

    def loss(self, weights: Any, x: Any, y: Any) -> Any:
        """The square loss, as a method."""
        return mean_loss(weights, x, y)


def methods(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The step is a method of a class, which reads the rate off its object."""
    trainer = Trainer(impl, watch, RATE)
    weights = put_zeros(impl)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = trainer.step(weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


def static_self(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The function of a class is jitted with its object as a static argument."""

    class Model:
        rate = RATE

    def body(self: Model, weights: Any, x: Any, y: Any) -> Any:
        return weights - self.rate * jax.grad(mean_loss)(weights, x, y)

    step = jax.jit(watch.traced(body), static_argnums=0, out_shardings=whole(impl))
    model, weights = Model(), put_zeros(impl)

    def turn(n: int) -> Any:
        nonlocal weights
        weights = step(model, weights, *sharded_batch(impl, cluster, n))
        return weights

    return turn


CALLING: Mapping[str, Idiom] = table(
    Idiom(
        "static-flag",
        "A step with a static flag that alternates between both values,",
        alternating(put_zeros),
        once(descended_in_odd_steps),
        lambda place: DESCENT,
    ),
    Idiom(
        "static-flag-placed",
        "A step with a static flag whose state comes from another jit",
        alternating(made_zeros),
        once(descended_in_odd_steps),
        lambda place: DESCENT,
    ),
    Idiom(
        "static-callable",
        "A step whose loss function is a static argument",
        static_callable,
        once(trained),
        reduced(WIDTH),
    ),
    Idiom(
        "many-arguments",
        "A step of six arguments, sharded, replicated, static and donated,",
        many_arguments,
        once(with_momentum),
        reduced(WIDTH),
        gives=True,
    ),
    Idiom(
        "decorator",
        "A step decorated with `functools.partial(jax.jit, ...)`",
        decorated,
        once(trained),
        lambda place: DESCENT,
    ),
    Idiom(
        "method",
        "A step that is a method of a class",
        methods,
        once(trained),
        reduced(WIDTH),
    ),
    Idiom(
        "static-self",
        "A step whose object is a static argument",
        static_self,
        once(trained),
        reduced(WIDTH),
    ),
)


@in_a_jit().family(
    "idioms.jit.{idiom}",
    idiom=CALLING,
    topologies=ONE_PROCESS,
    left_out="the same pattern under pmap runs in one process only",
)
def call(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """Run a loop around a plain jit that is called in one of these ways."""
    follow(impl, cluster, idiom)
