"""The third fix for `CopyArrays ... same size`: indices that are resolved while tracing.

That no row is communicated is tested by errors.copy-arrays.fix-static-range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.spec.arrays import returns_array
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, noted, twice
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

ROWS, WIDTH = 8, 3
PATHS = ("gather", "dynamic_slice", "slice")  # how a row can be taken, by the primitive


@dataclass(frozen=True, slots=True)
class Index:
    """One row's index, out of what a user loops over, and how the guide has it resolved."""

    key: str
    text: str
    of: Callable[[], Any]
    row: int
    path: str


INDICES: Mapping[str, Index] = table(
    Index("range", "range(8)", lambda: range(ROWS)[3], 3, "slice"),
    Index("enumerate", "enumerate(rows)", lambda: list(enumerate("abcdefgh"))[5][0], 5, "slice"),
    Index("range-from-the-end", "range(-8, 0)", lambda: range(-ROWS, 0)[6], 6, "slice"),
    Index("numpy", "np.arange(8)", lambda: np.arange(ROWS)[3], 3, "slice"),
    Index("jnp", "jnp.arange(8)", lambda: jnp.arange(ROWS)[3], 3, "gather"),
)


def primitives(jaxpr: Any) -> Iterator[str]:
    """The primitives of a traced program, those of its jitted parts among them."""
    for equation in jaxpr.eqns:
        inner = [one for one in equation.params.values() if hasattr(one, "jaxpr")]
        for part in inner:
            yield from primitives(part.jaxpr)
        if not inner:
            yield equation.primitive.name


def numbers() -> Any:
    """Rows of distinct numbers."""
    return np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)


def _row_of(index: Index) -> Callable[[Place], Any]:
    @described(f"row {index.row}")
    def row(place: Place) -> Any:
        return numbers()[index.row]

    return row


@family(
    "indexing.static.{index}",
    index=INDICES,
    claim="migrate-pmap-later.fix-static-range",
    title="Indexing with an index from `{index.text}` reads the row by a {index.path}",
    fact="indexing.static",
    left_out="the result does not depend on the number of processes",
    expect=lambda index: of_jax(
        every(
            twice(returns_array(_row_of(index))),
            noted("path", f"by a {index.path}", lambda _, seen: seen == index.path),
        )
    ),
)
def static_index(impl: Implementation, cluster: Cluster, index: Index) -> None:
    """A row of an array, and the primitive by which it is taken."""
    array = jax.device_put(numbers(), jax.sharding.NamedSharding(*_by_rows(cluster)))
    chosen = index.of()
    for name in ("first call", "second call"):
        cluster.step(name, jax.jit(lambda x: x[chosen]), array)
        traced = set(primitives(jax.make_jaxpr(lambda x: x[chosen])(array).jaxpr))
        cluster.note("path", next((path for path in PATHS if path in traced), "none of them"))


def _by_rows(cluster: Cluster) -> tuple[Any, Any]:
    mesh = jax.sharding.Mesh(np.array(cluster.devices), ("i",))
    return mesh, jax.sharding.PartitionSpec("i")
