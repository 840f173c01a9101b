"""Layers of libraries and their dependence on the body's rank: how each is made, and its NumPy
model.

Most of Flax's treat all leading dimensions as a batch; Equinox's require the rank of one example.
The parameters are small integers, set by hand, so that a NumPy model can compute the result; it is
below the function that makes the layer. No clause is declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.sections.rank.bodies import (
    GRID,
    LINE,
    SQUARE,
    Refusal,
)
from conformance.worker.bodies import Body

SHIFT = np.float32(16)  # a norm's bias: far enough from zero that no result is lost in rounding

EXAMPLE, EXAMPLES, IMAGE = LINE.sizes, GRID.sizes, SQUARE.sizes
BATCH = (2, 4, 4)  # two examples of four positions with four features


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: as a user writes it, how to make it, its NumPy model, and its input's sizes."""

    key: str
    text: str
    make: Callable[[], Body]
    model: Body
    sizes: tuple[int, ...] = EXAMPLE
    refused: Refusal | None = None  # how it refuses the block, where its model does
    fact: str = ""  # the finding that it varies, where that has another name

    @property
    def finding(self) -> str:
        """The last word of the clause's fact."""
        return self.fact or self.key


def parameters(*shape: int) -> Any:
    """Return small integers, with no two rows equal."""
    return (np.arange(1, 1 + np.prod(shape)) * 3 % 7 - 2).reshape(shape).astype(np.float32)


def normal(x: Any, axes: Any, epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
