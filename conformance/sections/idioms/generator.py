"""JAX's default generator of random numbers, Threefry, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.sections.idioms import WIDTH

SEED = 7
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


def threefry(key: Any, low: Any) -> Any:
    """Two words of each count, of which these are the low words."""
    low = np.asarray(low, np.uint32)
    keys = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    with np.errstate(over="ignore"):
        first, second = np.zeros_like(low) + keys[0], low + keys[1]
        for part in range(5):
            for by in ROTATIONS[part % 2]:
                first = first + second
                second = ((second << np.uint32(by)) | (second >> np.uint32(32 - by))) ^ first
            first = first + keys[(part + 1) % 3]
            second = second + keys[(part + 2) % 3] + np.uint32(part + 1)
    return np.stack([first, second], -1)


def seeded() -> Any:
    """`jax.random.PRNGKey(SEED)`."""
    return np.array([0, SEED], np.uint32)


def split(key: Any, count: int = 2) -> Any:
    """`jax.random.split`."""
    return threefry(key, np.arange(count))


def folded(key: Any, number: int) -> Any:
    """`jax.random.fold_in`."""
    return threefry(key, [number])[0]


def uniform(key: Any) -> Any:
    """`jax.random.uniform` of one row."""
    words = threefry(key, np.arange(WIDTH))
    bits = (words[:, 0] ^ words[:, 1]) >> np.uint32(9) | np.uint32(0x3F800000)
    return bits.view(np.float32) - np.float32(1)
