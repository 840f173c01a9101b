"""NumPy models and data of several modules of idioms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.sections.idioms import (
    FLOAT_BYTES,
    RATE,
    WIDTH,
    examples,
    mine,
    on_each,
    own_gradients,
)
from conformance.spec.topology import Place

CLASSES = 4
KERNEL = (np.arange(WIDTH * CLASSES) * 5 % 7 - 3).reshape(WIDTH, CLASSES).astype(np.float32)
LIMIT = 40.0  # up to which a chain grows
KEPT = 0.5  # of the momentum
MOST = 2.0  # of a gradient's norm
MICRO = 2  # parts of each device's batch


def shared(place: Place, n: int) -> tuple[Any, Any]:
    """The one batch of all members: the first device's examples."""
    features, targets = examples(place, n)
    return features[0], targets[0]


def members(place: Place) -> Any:
    """Return the initial weights of each member."""
    return place.all_rows(WIDTH) % 4


def trained_members(place: Place, n: int, rates: Any = RATE) -> Any:
    """All members after so many steps."""
    weights = members(place)
    for k in range(1, n + 1):
        x, y = (np.broadcast_to(one, (len(weights), *one.shape)) for one in shared(place, k))
        own = [own_gradients(w, x[[d]], y[[d]])[0] for d, w in enumerate(weights)]
        weights = weights - rates * np.stack(own)
    return weights


def moved_on(place: Place, n: int) -> Any:
    """This process's members."""
    weights = members(place)
    for k in range(1, n + 1):
        x, y = examples(place, k)
        own = [own_gradients(w, x[[d]], y[[d]])[0] for d, w in enumerate(weights)]
        weights = np.roll(weights - RATE * np.stack(own), 1, 0)
    return mine(place, weights)


def padded(place: Place, n: int) -> tuple[Any, Any, Any]:
    """Features, labels, and a mask that leaves out the last `n` examples of all devices."""
    features, targets = examples(place, n)
    mask = np.ones(targets.size, np.float32)
    mask[-n:] = 0
    return features, targets.astype(np.int32) % CLASSES, mask.reshape(targets.shape)


def normal(place: Place, n: int) -> Any:
    """Batch norm of all devices' examples together."""
    mean, variance = np.zeros(WIDTH), np.ones(WIDTH)
    y = np.zeros(0)
    for k in range(1, n + 1):
        x = examples(place, k)[0].astype(np.float64)
        mean = (mean + x.mean((0, 1))) / 2
        variance = (variance + x.var((0, 1))) / 2
        y = (x - x.mean((0, 1))) / np.sqrt(x.var((0, 1)) + 1)
    return {"mean": on_each(place, mean), "var": on_each(place, variance)}, mine(place, y)


def first_copy(tree: Any) -> Any:
    """The first row of each leaf of a model's result."""
    if isinstance(tree, dict):
        return {key: first_copy(one) for key, one in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map(first_copy, tree))
    return tree[0]


def once(model: Callable[[Place, int], Any]) -> Callable[[Place, int], Any]:
    """A model of which all is replicated, without the axis of the devices."""
    return lambda place, n: first_copy(model(place, n))


def of_all(elements: int) -> Any:
    """An all-gather of so many elements of each device, which is as large as all of them."""
    return lambda place: {"all-gather": place.topology.devices * elements * FLOAT_BYTES}


def reduced(elements: int) -> Any:
    """An all-reduce of so many elements."""
    return lambda place: {"all-reduce": elements * FLOAT_BYTES}


def grown(place: Place, n: int) -> Any:
    """The end of each device's chain, and how many steps it took."""
    ends, counts = [], []
    for start in place.rows() * n:
        value, count = float(start), 0
        while value < LIMIT:
            value, count = value * 1.5, count + 1
        ends.append(value)
        counts.append(count)
    return np.array(ends, np.float32), np.array(counts, np.int32)
