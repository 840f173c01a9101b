"""Bodies at the size of real data, where the machine's threads share the work of one operation.

All other programs here are of a few elements, which one thread computes: what goes wrong between
threads, or in the last part of an array that does not divide among them, shows in none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms.sized import ends_and_sum
from conformance.spec.expectation import in_steps, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.bodies import Body

DEADLINE_S = 10.0  # a call takes less than a tenth of a second

CALLS = ("first call", "second call")

BATCH = 1024  # examples on each device
FEATURES = 64
WORDS = 4096  # of a table that is looked up
POINTS = 2**15 + 1  # one more than divides among any threads
MOST = 5  # the largest of the integers that all data are, so that float32 sums are exact


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `body` at size, `model` of it on one device; `shapes` of each device's arguments.

    An argument holds small whole numbers; one of `indices` counts rows of the first argument.
    """

    key: str
    text: str
    body: Body
    model: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    indices: tuple[int, ...] = ()


def data(place: Place, kernel: Kernel) -> list[Any]:
    """The arguments, a row for each device of all processes."""
    numbers = np.random.default_rng(len(kernel.text))
    count = place.topology.devices
    made: list[Any] = []
    for position, shape in enumerate(kernel.shapes):
        if position in kernel.indices:
            rows = kernel.shapes[0][0]
            made.append(numbers.integers(0, rows, (count, *shape)).astype(np.int32))
        else:
            whole = numbers.integers(-MOST, MOST + 1, (count, *shape))
            made.append(whole.astype(np.float32))
    return made


def ends_of(kernel: Kernel) -> Callable[[Place], Any]:
    """The ends and the sum of what each of this process's devices holds."""

    def model(place: Place) -> Any:
        mine = [place.mine(one) for one in data(place, kernel)]
        rows = [kernel.model(*row) for row in zip(*mine, strict=True)]
        return ends_and_sum(np.stack(rows).astype(np.float32))

    return model


def right(kernel: Kernel) -> Expectation:
    """The model's numbers at each call."""
    text = "the ends of each device's result, and its sum, as NumPy computes them"
    return in_steps(returns(ends_of(kernel), text=text), *CALLS)


def squares(matrix: Any, points: Any) -> Any:
    """The squared length of each point's image, one point at a time."""
    return jax.vmap(lambda point: ((matrix @ point) ** 2).sum())(points)


def sums(matrix: Any, points: Any) -> Any:
    """The sum of each point's image, one point at a time."""
    return jax.vmap(lambda point: (matrix @ point).sum())(points)


def gradient_of_table(rows: Any, which: Any) -> Any:
    """Add rows where they were looked up, as the gradient of a lookup does."""
    return jnp.zeros_like(rows).at[which].add(rows[which])


def gradient_of_table_model(rows: Any, which: Any) -> Any:
    """The same by NumPy."""
    added = np.zeros_like(rows)
    np.add.at(added, which, rows[which])
    return added


KERNELS = table(
    Kernel(
        "bias",
        "The gradient of a bias, a product summed over the batch",
        lambda x, kernel: (x @ kernel.T).sum(0),
        lambda x, kernel: (x @ kernel.T).sum(0),
        ((BATCH, FEATURES), (FEATURES, FEATURES)),
    ),
    Kernel(
        "bias-by-einsum",
        "The gradient of a bias, as one einsum",
        lambda x, kernel: jnp.einsum("bi,oi->o", x, kernel),
        lambda x, kernel: (x @ kernel.T).sum(0),
        ((BATCH, FEATURES), (FEATURES, FEATURES)),
    ),
    Kernel(
        "kernel",
        "The gradient of a layer's weights, a product over the batch",
        lambda x, rest: x.T @ rest,
        lambda x, rest: x.T @ rest,
        ((BATCH, FEATURES), (BATCH, FEATURES)),
    ),
    Kernel(
        "squares",
        "Squared norms of vmapped products of a matrix and a vector",
        squares,
        lambda matrix, points: ((points @ matrix.T) ** 2).sum(-1),
        ((3, 3), (POINTS, 3)),
    ),
    Kernel(
        "squares-of-one-product",
        "Squared norms of the rows of one product",
        lambda matrix, points: ((points @ matrix.T) ** 2).sum(-1),
        lambda matrix, points: ((points @ matrix.T) ** 2).sum(-1),
        ((3, 3), (POINTS, 3)),
    ),
    Kernel(
        "sums",
        "Sums of vmapped products of a matrix and a vector",
        sums,
        lambda matrix, points: (points @ matrix.T).sum(-1),
        ((3, 3), (POINTS, 3)),
    ),
    Kernel(
        "sums-of-one-product",
        "Sums of the rows of one product",
        lambda matrix, points: (points @ matrix.T).sum(-1),
        lambda matrix, points: (points @ matrix.T).sum(-1),
        ((3, 3), (POINTS, 3)),
    ),
    Kernel(
        "variance",
        "Squared differences summed over the batch",
        lambda x, y: ((x - y) ** 2).sum(0),
        lambda x, y: ((x - y) ** 2).sum(0),
        ((POINTS, 8), (POINTS, 8)),
    ),
    Kernel(
        "table",
        "The gradient of a table of embeddings",
        gradient_of_table,
        gradient_of_table_model,
        ((WORDS, FEATURES), (BATCH,)),
        indices=(1,),
    ),
    Kernel(
        "running",
        "A running sum and a sort",
        lambda x, y: jnp.cumsum(x) + jnp.sort(y),
        lambda x, y: np.cumsum(x) + np.sort(y),
        ((POINTS,), (POINTS,)),
    ),
)
