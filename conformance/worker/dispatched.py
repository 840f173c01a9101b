"""Programs that compute almost nothing, so that a call of them costs its dispatch.

The section `indexing` counts what JAX runs for them, and the section `timing` shows how long it
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.spec.comparing import Model
from conformance.spec.family import table
from conformance.worker.bodies import Body, double, psum
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 4  # elements of each row
LEAVES = 200


def double_leaves() -> Body:
    """Return a body that doubles each leaf of a dict."""
    return lambda tree: {key: x * 2 for key, x in tree.items()}


@dataclass(frozen=True, slots=True)
class Program:
    """What is mapped: a `body`, created for each map, of an array or of a `tree` of arrays.

    `model` is the part of the result that a process holds.
    """

    key: str
    text: str
    body: Callable[[], Body]
    model: Model
    tree: bool = False

    def argument(self, impl: Implementation, cluster: Cluster) -> Any:
        """Return a row per device, sharded as a map's own output is; the same array in all
        leaves.
        """
        array = impl.map(lambda x: x)(impl.given(cluster.rows(WIDTH)))
        return {f"{i:03}": array for i in range(LEAVES)} if self.tree else array


PROGRAMS: Mapping[str, Program] = table(
    Program("one", "one small array", double, lambda place: place.rows(WIDTH) * 2),
    Program(
        "leaves",
        f"a pytree of {LEAVES} leaves",
        double_leaves,
        lambda place: [place.rows(WIDTH) * 2] * LEAVES,
        tree=True,
    ),
    Program(
        "psum",
        "a psum",
        psum,
        lambda place: np.broadcast_to(place.all_rows(WIDTH).sum(0), place.rows(WIDTH).shape),
    ),
)
