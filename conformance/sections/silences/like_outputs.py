"""Arrays that jnp makes like an output, of its shape and type: the devices on which they are.

Legacy pmap's were on the first device, uncommitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.aspects import COMMITTED, SHARDING_TYPE
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.combining import on_one_device
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.arrays-like-an-output", needs=devices(2), left_out=ONE_PROCESS_ALONE
)

Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Like:
    """What is made of an output, and what NumPy makes of the same rows."""

    key: str
    text: str
    make: Callable[[Any], Any]
    by_numpy: Callable[[Rows], Any]
    fixes: str | None = None

    def model(self, place: Place) -> Any:
        """NumPy's arrays."""
        return self.by_numpy(place.rows(WIDTH) * 2)


LIKE: Mapping[str, Like] = table(
    Like("zeros", "`jnp.zeros_like(out)`", jnp.zeros_like, np.zeros_like),
    Like(
        "others",
        "`jnp.ones_like(out)` and `jnp.full_like(out, 7)`",
        lambda out: [jnp.ones_like(out), jnp.full_like(out, 7)],
        lambda a: [np.ones_like(a), np.full_like(a, 7)],
    ),
    Like(
        "cast",
        "`out.astype(jnp.float16)`",
        lambda out: out.astype(jnp.float16),
        lambda a: a.astype(np.float16),
    ),
    Like("under-jit", "`jax.jit(jnp.zeros_like)(out)`", jax.jit(jnp.zeros_like), np.zeros_like),
    Like(
        "by-shape",
        "`jnp.zeros(out.shape, out.dtype)`",
        lambda out: jnp.zeros(out.shape, out.dtype),
        np.zeros_like,
        "silences.like-outputs.zeros",
    ),
)


def as_legacy(like: Like) -> Expectation:
    """NumPy's numbers, on the first device, uncommitted."""
    right = returns(like.model, text=f"what NumPy gives for {like.text}")
    text = "on [0], not committed, as legacy's"
    there = on_one_device(text, lambda _: 0, committed=False, claims={COMMITTED, SHARDING_TYPE})
    return twice(every(right, there))


@DEFAULTS.family(
    "silences.like-outputs.{like}",
    like=LIKE,
    title="Of an output, {like.text} is on the first device and not committed to it.",
    expect=lambda like: everywhere(as_legacy(like)),
)
def made_like(impl: Implementation, cluster: Cluster, like: Like) -> None:
    """An array like an output, made twice."""
    out = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    cluster.twice(like.make, out)
