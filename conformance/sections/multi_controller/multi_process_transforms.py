"""Collectives of a transformed mapped function: they must span all processes.

Each transform of each collective is called with NumPy rows, with a jax.Array on this process's
devices, with another mapped function's output, and with NumPy rows again. Legacy pmap is the
reference; where it refuses, the model of all processes is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.multi_controller.maps import (
    COLLECTIVES,
    OWN,
    Collective,
    Rows,
    host_local,
    width,
)
from conformance.spec.clause import processes
from conformance.spec.columns import Columns, everywhere, unless_legacy
from conformance.spec.comparing import Model
from conformance.spec.expectation import in_steps, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

CALLS = ("numpy", "host local", "fed back", "numpy again")
BATCH = 2

NO_JIT = raises(NotImplementedError, "^jit of multi-host pmap not implemented", phase="lower")
NO_GRADIENT = r"^Differentiation rule for '{}' not implemented$"

Mapped = Callable[[Any], Any]


def weights(place: Place) -> Rows:
    """Return the weight of each element of an output in the number that is differentiated."""
    return place.all_rows(width(place)) % 3 + 1


def batched(model: Callable[[Rows], Rows], rows: Rows) -> Rows:
    """The model of each of the batch, which is axis 1."""
    return np.stack([model(rows[:, k]) for k in range(BATCH)], 1)


def transposed(model: Callable[[Rows], Rows], weighed: Rows) -> Rows:
    """The gradient of the weighed sum of a linear model's values."""
    unit = np.eye(weighed.size).reshape(-1, *weighed.shape)
    return np.array([(model(one) * weighed).sum() for one in unit]).reshape(weighed.shape)


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform of a mapped function: `wrap`, given the weights; `model` is its effect on a
    collective's.

    If `taken` is false, legacy pmap refuses the transform in several processes.
    """

    key: str
    text: str
    wrap: Callable[[Mapped, Any], Mapped]
    model: Callable[[Callable[[Rows], Rows], Rows, Rows], Rows]
    taken: bool = True
    differentiates: bool = False
    batch: bool = False

    def shape(self, place: Place) -> tuple[int, ...]:
        """A row's shape."""
        return (BATCH, width(place)) if self.batch else (width(place),)


def scanned(mapped: Mapped, _: Any) -> Mapped:
    """The map applied thrice, by a scan: twice, an exchange would be undone."""
    return lambda x: jax.lax.scan(lambda carry, _: (mapped(carry), None), x, None, length=3)[0]


def weighed_sum(mapped: Mapped, by: Any) -> Mapped:
    """Return the gradient of the weighted sum of the output."""
    gradient: Mapped = jax.grad(lambda x: (mapped(x) * by).sum())
    return gradient


TRANSFORMS: Mapping[str, Transform] = table(
    Transform("top-level", "by itself", lambda f, _: f, lambda model, a, _: model(a)),
    Transform(
        "jit",
        "under jit",
        lambda f, _: jax.jit(lambda x: f(x)),
        lambda model, a, _: model(a),
        taken=False,
    ),
    Transform(
        "vmap",
        "under vmap",
        lambda f, _: jax.vmap(lambda x: f(x), 1, 1),
        lambda model, a, _: batched(model, a),
        batch=True,
    ),
    Transform(
        "grad",
        "under grad",
        weighed_sum,
        lambda model, _, by: transposed(model, by),
        differentiates=True,
    ),
    Transform(
        "scan", "under scan", scanned, lambda model, a, _: model(model(model(a))), taken=False
    ),
    Transform(
        "remat",
        "under jax.checkpoint",
        lambda f, _: jax.checkpoint(lambda x: f(x)),
        lambda model, a, _: model(a),
    ),
    Transform(
        "grad-of-remat",
        "under grad of jax.checkpoint",
        lambda f, by: weighed_sum(jax.checkpoint(lambda x: f(x)), by),
        lambda model, _, by: transposed(model, by),
        differentiates=True,
    ),
)


def spanning(transform: Transform, collective: Collective, *, everyone: bool) -> Model:
    """Return the model of a mapped function that spans the devices of all processes, or of this
    one.
    """

    @described("what the collective over the devices of all processes gives this process's")
    def model(place: Place) -> Any:
        rows, by = place.all_rows(*transform.shape(place)), weights(place)
        if everyone:
            held = place.mine(transform.model(collective.model, rows, by))
        else:
            held = transform.model(collective.model, place.mine(rows), place.mine(by))
        return held.astype(np.float32)

    return model


def right(transform: Transform, collective: Collective) -> Expectation:
    """Expect the values over all processes; those over one process are the named mistake."""
    if transform.differentiates and not collective.differentiable:
        return in_steps(
            raises(NotImplementedError, NO_GRADIENT.format(collective.key), phase="trace"), *CALLS
        )
    mistakes = {OWN: spanning(transform, collective, everyone=False)}
    model = spanning(transform, collective, everyone=True)
    return in_steps(returns(model, mistakes=mistakes), *CALLS)


def columns(transform: Transform, collective: Collective) -> Columns:
    """The right values everywhere, but where legacy refuses."""
    expected = right(transform, collective)
    return (
        everywhere(expected)
        if transform.taken
        else unless_legacy(in_steps(NO_JIT, *CALLS), expected)
    )


def asked(transform: Transform, collective: Collective) -> bool:
    """Every choice but one, which has a clause elsewhere: indexing.under-jit.psum."""
    return (transform.key, collective.key) != ("jit", "psum")


@family(
    "multi_controller.map.{transform}.{collective}",
    transform=TRANSFORMS,
    collective=COLLECTIVES,
    only=asked,
    claim=lambda transform: (
        "pmap-silence.gradient-of-collectives"
        if transform.differentiates
        else "pmap-silence.transforms-span-processes"
    ),
    title="In several processes, a mapped function with {collective}, {transform.text}.",
    fact="multi_controller.map.{transform}",
    needs=processes(2),
    topologies=lambda collective: (
        SEVERAL_PROCESSES if collective.key in ("psum", "axis-index") else FOUR_PROCESSES
    ),
    left_out=lambda collective: (
        ""
        if collective.key in ("psum", "axis-index")
        else "psum is tested there, and these use the same devices"
    ),
    expect=columns,
)
def transformed(
    impl: Implementation, cluster: Cluster, transform: Transform, collective: Collective
) -> None:
    """A transformed map of a collective, with each kind of argument."""
    shape = transform.shape(cluster)
    by = weights(cluster)
    function = transform.wrap(
        impl.map(collective.body()), impl.given(cluster.mine(by)) if impl.is_pmap else by
    )
    rows, written = cluster.rows(*shape), impl.rows(cluster, *shape)
    cluster.step("numpy", function, written)
    cluster.step("host local", function, host_local(impl, rows))
    cluster.step("fed back", function, impl.map(lambda x: x)(impl.given(rows)))
    cluster.step("numpy again", function, written)
