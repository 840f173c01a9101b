"""jax.debug_key_reuse around mapped functions: it sees nothing of what legacy pmap maps.

What is drawn is compared with what the same body draws under vmap, without the check: `keys`
compares draws with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

WORDS = 2  # of a raw key, and of a draw


def draw(key: Any) -> Any:
    return jax.random.bits(key, (WORDS,))


def draw_twice(key: Any) -> Any:
    """The second draw differs from the first by its bounds."""
    return draw(key) ^ jax.random.randint(key, (WORDS,), 0, 1000).astype(np.uint32)


def draw_from_two(key: Any) -> Any:
    first, second = jax.random.split(key)
    return draw(first) ^ jax.random.randint(second, (WORDS,), 0, 1000).astype(np.uint32)


def draw_from_folded(key: Any) -> Any:
    return draw(jax.random.fold_in(key, 5))


@dataclass(frozen=True, slots=True)
class Use:
    """A body that draws from its key; with `same_keys` the second call gets the first one's."""

    key: str
    text: str
    body: Callable[[Any], Any]
    same_keys: bool = False
    fixes: str | None = None


USES: Mapping[str, Use] = table(
    Use("called-again", "a second call with the same typed keys works", draw, same_keys=True),
    Use("drawn-twice", "a body that draws twice from a typed key works", draw_twice),
    Use(
        "folded",
        "a second call with the same typed keys works if the body draws from what fold_in returns",
        draw_from_folded,
        same_keys=True,
        fixes="silences.key-reuse.called-again",
    ),
    Use(
        "split",
        "a body that splits a typed key and draws from both works",
        draw_from_two,
        fixes="silences.key-reuse.drawn-twice",
    ),
)


@described("each draw is as under vmap")
def _all_equal(place: Place) -> Any:
    return np.ones((place.rows(WORDS).shape[0], WORDS), bool)


@family(
    "silences.key-reuse.{use}",
    use=USES,
    claim="pmap-silence.key-reuse",
    title="Under `jax.debug_key_reuse(True)`, {use.text}.",
    fact="silences.key-reuse.{use}",
    fixes=lambda use: use.fixes,
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    expect=everywhere(twice(returns(_all_equal))),
)
def reused(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A map of typed keys, called twice under the check."""

    def keys() -> Any:
        return jax.random.wrap_key_data(cluster.rows(WORDS, dtype=np.uint32))

    expected = np.asarray(jax.vmap(use.body)(keys()))
    function, given = impl.map(use.body), keys()

    def call() -> Any:
        with jax.debug_key_reuse(True):
            drawn = function(given if use.same_keys else keys())
        return np.asarray(drawn) == expected

    cluster.twice(call)
