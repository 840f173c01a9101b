"""Bodies that many probes map, each with the NumPy model of its map.

JAX caches by function object, so each probe maps a body of its own: `impl.map(double())`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.spec.comparing import Model
from conformance.spec.texts import described
from conformance.spec.topology import Place

Body = Callable[..., Any]


def double() -> Body:
    """Return a body that doubles a row."""
    return lambda x: x * 2


def doubled(*shape: int) -> Model:
    """Return the model of `double` for rows of this shape."""

    @described("this process's rows, doubled")
    def model(place: Place) -> Any:
        return place.rows(*shape) * 2

    return model


def add() -> Body:
    """Return a body that adds two arguments."""
    return lambda x, y: x + y


def addend(width: int) -> Any:
    """Return an unmapped argument to add to each row: 10, 20, ... (float32)."""
    return np.arange(10, 10 * width + 10, 10, dtype=np.float32)


def psum(axis_name: str = "i") -> Body:
    """Return a body that sums all rows of all devices, on each device."""
    return lambda x: jax.lax.psum(x, axis_name)


def summed(*shape: int) -> Model:
    """Return the model of `psum` for rows of this shape, as a replicated output has it."""

    @described("the sum of all rows")
    def model(place: Place) -> Any:
        return place.all_rows(*shape).sum(0)

    return model
