"""Functions that are mapped again, after what they read changed, and functions that are dropped."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    answers,
    ask,
    control,
    doubled,
)
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

BEFORE, AFTER = "before the change", "after the change"
STALE = "the values before the change"
OF_A_JIT = "jit and shard_map are of the user's own making there"


class Model:
    """An object whose method multiplies by its factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def step(self, x: Any) -> Any:
        """Multiply rows by the factor."""
        return x * self.factor


class Caller:
    """Calls an object's method; all callers of one object are equal."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, x: Any) -> Any:
        """Multiply rows by the object's factor."""
        return self.model.step(x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Caller) and other.model is self.model

    def __hash__(self) -> int:
        return id(self.model)


# --- Mapped again ------------------------------------------------------------------------

AGAIN = Defaults(claim="pmap-silence.retraces", needs=devices(2), left_out=ONE_PROCESS_ALONE)


@described("the rows, times five")
def fivefold(place: Place) -> Any:
    return place.rows(WIDTH) * 5


RIGHT = every(
    CONTROLLED,
    in_steps(returns(doubled), BEFORE),
    in_steps(returns(fivefold, mistakes={STALE: doubled}), AFTER),
)


def changed(impl: Implementation, cluster: Cluster, mapped: Callable[[Model], Any]) -> None:
    """Map an object's step and call it; change the object's factor, and do both again.

    A control shows what `jax.pmap` is: a second map that is not traced proves nothing.
    """
    control(impl, cluster)
    impl.select()
    model = Model(2.0)
    cluster.step(BEFORE, lambda: mapped(model)(cluster.rows(WIDTH)))
    model.factor = 5.0
    cluster.step(AFTER, lambda: mapped(model)(cluster.rows(WIDTH)))


@dataclass(frozen=True, slots=True)
class Way:
    """A way to map an object's method."""

    key: str
    text: str
    mapped: Callable[[Model], Any]


WAYS: Mapping[str, Way] = table(
    Way("named", "with axis_name", lambda model: jax.pmap(model.step, "i")),
    Way("unnamed", "without axis_name", lambda model: jax.pmap(model.step)),
    Way("equal", "through an equal callable object", lambda model: jax.pmap(Caller(model), "i")),
    Way("partial", "through functools.partial", lambda model: jax.pmap(partial(model.step), "i")),
)


@AGAIN.family(
    "silences.remapped.{way}",
    way=WAYS,
    title="A method is mapped again {way.text}, after its object changed: it reads the new value.",
    fact="silences.remapped",
    expect=of_pmaps(RIGHT, OF_A_JIT),
)
def remapped(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """A bound method, mapped before and after a change."""
    changed(impl, cluster, way.mapped)


@AGAIN.clause(
    "silences.remapped.new-function",
    title="A new function that calls a method is mapped after its object changed.",
    fixes="silences.remapped.named",
    expect=of_pmaps(RIGHT, OF_A_JIT),
)
def new_function(impl: Implementation, cluster: Cluster) -> None:
    """A new lambda around a bound method, mapped before and after a change."""
    changed(impl, cluster, lambda model: jax.pmap(lambda x: model.step(x), "i"))


# --- Dropped ------------------------------------------------------------------------

FREED = Defaults(claim="pmap-silence.freed-functions", needs=devices(2), left_out=ONE_PROCESS_ALONE)
COUNT = 3  # functions
NONE_ALIVE = every(CONTROLLED, in_steps(answers(0), *TWICE))
ALL_FREED = everywhere(NONE_ALIVE)


def alive(call: Callable[[Model], object], release: Callable[[], None]) -> int:
    """Return how many of some objects live on after `call` mapped and called a function of each."""

    def called() -> weakref.ref[Model]:
        model = Model(2.0)
        call(model)
        return weakref.ref(model)

    found = [called() for _ in range(COUNT)]
    release()
    gc.collect()
    return sum(one() is not None for one in found)


def closing_over(impl: Implementation, rows: Any) -> Callable[[Model], object]:
    """Return a call of a new mapped function that closes over an object."""
    return lambda model: np.asarray(impl.map(lambda x: model.step(x))(rows))


def with_static(impl: Implementation, rows: Any) -> Callable[[Model], object]:
    """Return a call of a new mapped function with an object as static argument."""

    def call(model: Model) -> object:
        function = impl.map(lambda x, model: model.step(x), static_broadcasted_argnums=1)
        return np.asarray(function(rows, model))

    return call


def count_twice(
    impl: Implementation,
    cluster: Cluster,
    release: Callable[[], None],
    using: Callable[[Implementation, Any], Callable[[Model], object]] = closing_over,
) -> None:
    """Ask how many objects live on, twice, after a control."""
    control(impl, cluster)
    call = using(impl, cluster.rows(WIDTH))
    for step in TWICE:
        ask(cluster, step, lambda: alive(call, release))


@FREED.clause("silences.freed.dropped", expect=ALL_FREED)
def dropped(impl: Implementation, cluster: Cluster) -> None:
    """What a mapped function closes over is freed when the function is dropped."""
    count_twice(impl, cluster, lambda: None)


@FREED.clause("silences.freed.cleared", fixes="silences.freed.dropped", expect=ALL_FREED)
def cleared(impl: Implementation, cluster: Cluster) -> None:
    """What a dropped mapped function closes over is freed by `jax.clear_caches()`."""
    count_twice(impl, cluster, jax.clear_caches)


@FREED.clause(
    "silences.freed.static-argument",
    expect=of_pmaps(NONE_ALIVE, "shard_map has no static arguments"),
)
def static_argument(impl: Implementation, cluster: Cluster) -> None:
    """A static argument is freed when the mapped function is dropped."""
    count_twice(impl, cluster, lambda: None, with_static)
