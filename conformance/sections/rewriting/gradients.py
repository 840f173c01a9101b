"""Parts that clauses on gradients share: the loss, the ways to pass its parameters, shard_map's
check.

The documents say nothing about gradients, so legacy pmap is the reference. By its rule, which the
models spell out, a gradient taken in the body is that of all devices' losses together with respect
to this device's own parameters. No error shows a sum or a factor too many, so the models of the
likely mistakes have names, and a cell that returns one of them names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.columns import Columns, everywhere, of_shard_map
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

WEIGHTS = np.array([1, 2, 3], np.float32)

UNCHECKED = "pmap-silence.gradient-check-vma"  # the claim of what is done without the check
OF_THE_OPTION = "check_vma is an option of shard_map"
# The reason why gradients through the mapped function are taken in one process.
ANOTHER_NUMBER = "the differentiated sum differs between processes"
OF_THE_CAST = "pmap does not tell varying values from others"


@dataclass(frozen=True, slots=True)
class Check:
    """The setting of shard_map's `check_vma`; `said` ends a title."""

    key: str
    vma: bool
    said: str

    def claim(self, claim: str) -> str:
        """The claim of a gradient taken with the check, or the one of all without it."""
        return claim if self.vma else UNCHECKED

    def fact(self, group: str, name: str) -> str:
        """The fact likewise: that without the check they are all legacy's is found once a group."""
        return f"{group}.{name}" if self.vma else f"{group}.unchecked"

    def columns(self, expected: Expectation) -> Columns:
        """The same of every implementation that has the option."""
        return everywhere(expected) if self.vma else of_shard_map(expected, OF_THE_OPTION)


CHECKS: Mapping[str, Check] = table(
    Check("", vma=True, said="."),
    Check(".unchecked", vma=False, said=", under check_vma=False."),
)


@dataclass(frozen=True, slots=True)
class Passing:
    """The way in which the body gets the parameters; `axis` is pmap's in_axes for them.

    With `closed` they are no argument, but closed over; with `cast` the body first makes them
    varying.
    """

    key: str
    text: str
    axis: int | None = None
    closed: bool = False
    cast: bool = False

    def weights(self, impl: Implementation, cluster: Cluster) -> Any:
        """Return the parameters as an argument: unchanged, or one copy per device."""
        if self.axis is None:
            return WEIGHTS
        return impl.given(np.broadcast_to(WEIGHTS, (cluster.topology.devices_per_process, 3)))

    def in_body(self, weights: Any) -> Any:
        """The parameters as the body uses them."""
        return varying(weights) if self.cast else weights

    def columns(self, check: Check, expected: Expectation) -> Columns:
        """The same of every implementation that has the cast and the option."""
        return of_shard_map(expected, OF_THE_CAST) if self.cast else check.columns(expected)


PASSINGS: Mapping[str, Passing] = table(
    Passing("unmapped", "unmapped"),
    Passing("stacked", "stacked and mapped", axis=0),
    Passing("closed-over", "closed over", closed=True),
    Passing("cast", "unmapped and cast to varying in the body", cast=True),
)


def varying(weights: Any) -> Any:
    """The cast after which shard_map treats a whole parameter as each device's own."""
    lax: Any = jax.lax  # pvary is what pcast was at first
    return (
        lax.pcast(weights, "i", to="varying") if hasattr(lax, "pcast") else lax.pvary(weights, "i")
    )


def loss(weights: Any, row: Any) -> Any:
    """Half of the squared prediction: its gradient depends on the row and on the weights."""
    return 0.5 * jax.numpy.dot(row, weights) ** 2


def gradients(place: Place) -> NDArray[Any]:
    """The gradient of each device's own loss, one row per device of the cluster."""
    rows = place.all_rows(3)
    of_each: NDArray[Any] = (rows @ WEIGHTS)[:, None] * rows
    return of_each


def mean_gradient(weights: Any, row: Any) -> Any:
    """The gradient of the data-parallel step: the devices' own, averaged."""
    return jax.lax.pmean(jax.grad(loss)(weights, row), "i")
