"""The collectives that are mapped over several processes, each beside its NumPy model.

Each body keeps the shape of its row and can be computed over any number of devices that divides
them all, so that what spans one process alone shows by its values: the same shape, and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.comparing import Model
from conformance.spec.expectation import OfEachStep, raises
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.bodies import Body
from conformance.worker.protocols import Implementation

Rows = NDArray[Any]

OWN = "the same over this process's own devices alone"


@dataclass(frozen=True, slots=True)
class Collective:
    """`apply` works on one device's row, `model` on the stack of the rows of all that it spans.

    `differentiable` is whether JAX defines a gradient.
    """

    key: str
    apply: Body
    model: Callable[[Rows], Rows]
    differentiable: bool = True

    def body(self) -> Body:
        """Return a new function object, because JAX's caches are keyed by function."""
        return lambda x: self.apply(x)


def width(place: Place) -> int:
    """Elements of a row: as many as there are devices, as the scattering collectives need."""
    return place.topology.devices


def _to_all(value: Rows, like: Rows) -> Rows:
    return np.broadcast_to(value, like.shape)


def _passed_on(x: Any) -> Any:
    size = jax.lax.psum(1, "i")
    return jax.lax.ppermute(x, "i", [(source, (source + 1) % size) for source in range(size)])


def _scattered(stack: Rows) -> Rows:
    scattered: Rows = stack.sum(0).reshape(len(stack), -1).sum(1)[:, None]
    return np.asarray(stack + scattered)


def _exchanged(stack: Rows) -> Rows:
    count = len(stack)
    return stack.reshape(count, count, -1).swapaxes(0, 1).reshape(stack.shape)


COLLECTIVES: Mapping[str, Collective] = table(
    Collective("psum", lambda x: jax.lax.psum(x, "i"), lambda a: _to_all(a.sum(0), a)),
    Collective("pmean", lambda x: jax.lax.pmean(x, "i"), lambda a: _to_all(a.mean(0), a)),
    Collective(
        "pmax",
        lambda x: jax.lax.pmax(x, "i"),
        lambda a: _to_all(a.max(0), a),
        differentiable=False,
    ),
    Collective(
        "pmin",
        lambda x: jax.lax.pmin(x, "i"),
        lambda a: _to_all(a.min(0), a),
        differentiable=False,
    ),
    Collective("all-gather", lambda x: x + jax.lax.all_gather(x, "i")[-1], lambda a: a + a[-1]),
    Collective(
        "psum-scatter",
        lambda x: x + jax.lax.psum_scatter(x, "i", tiled=True).sum(),
        _scattered,
    ),
    Collective("ppermute", _passed_on, lambda a: np.roll(a, 1, 0)),
    Collective("all-to-all", lambda x: jax.lax.all_to_all(x, "i", 0, 0, tiled=True), _exchanged),
    Collective(
        "axis-index",
        lambda x: x * (1 + jax.lax.axis_index("i")),
        lambda a: a * np.arange(1, len(a) + 1)[:, None],
    ),
)


def host_local(impl: Implementation, rows: Rows) -> Any:
    """Return this process's rows as a jax.Array; for a pmap it is on this process's devices
    only.
    """
    return jax.device_put(rows, impl.sharding()) if impl.is_pmap else impl.given(rows)


def refused(
    error: type[BaseException] | str,
    pattern: str,
    *,
    phase: str,
    otherwise: Model,
    mistakes: Mapping[str, Model],
) -> OfEachStep:
    """Expect an error as `raises` does; a step that returns instead gets the name of its wrong
    value, as by `returns`.
    """
    return raises(error, pattern, phase=phase, otherwise=otherwise, mistakes=mistakes)
