"""Outputs, or results computed from them, passed to a mapped function again, in one process.

Legacy pmap accepts any sharding and moves the array to its devices. For several processes, see
multi_controller. Wrappers are kept from the first call to the second, as in a loop: the C++ path
may refuse at the second call what Python accepts at the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.spec.arrays import returns_array
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_pmaps
from conformance.spec.expectation import raises, twice
from conformance.spec.family import family, table
from conformance.spec.names import SHARD_MAP
from conformance.spec.topology import Place
from conformance.worker.bodies import add, double, psum
from conformance.worker.kept import keep_maps
from conformance.worker.protocols import Cluster, Implementation

Rows = NDArray[Any]

BACK = "pmap-silence.feeding-outputs-back"
SUBSET = "pmap-silence.feeding-back-a-subset"
COUNT = 8  # devices
HALF = COUNT // 2
OWN_MESH = "shard_map has its devices from its mesh, never from its arguments' number"
REFUSED = twice(
    raises(ValueError, "^Received incompatible devices for jitted computation", phase="lower")
)


@dataclass(frozen=True, slots=True)
class Feed:
    """A `program` of an implementation, its devices and the rows, and its NumPy model.

    `of_pmap`: it does not name devices, which only a pmap allows. `elsewhere`: the output is on
    other devices than the mapped function's, or in another order, which the guide says shard_map
    refuses.
    """

    key: str
    text: str
    program: Callable[[Implementation, list[jax.Device], Rows], Any]
    model: Callable[[Rows], Any]
    claim: str = BACK
    width: int = 3
    of_pmap: bool = False
    elsewhere: bool = False

    def columns(self) -> Columns:
        """The right values everywhere."""

        def model(place: Place) -> Any:
            return self.model(place.all_rows(self.width))

        right = twice(returns_array(model, text=f"what NumPy gives for an output {self.text}"))
        if self.of_pmap:
            return of_pmaps(right, OWN_MESH)
        return everywhere(right) | ({SHARD_MAP: REFUSED} if self.elsewhere else {})


def one_more(impl: Implementation, x: Any, axis_name: str = "i", **options: Any) -> Any:
    """A map that adds one, called with `x`."""
    return impl.map(lambda x: x + 1, axis_name, **options)(x)


def output(impl: Implementation, rows: Any, axis_name: str = "i", **options: Any) -> Any:
    """A map's output: the rows, doubled."""
    return impl.map(double(), axis_name, **options)(rows)


def total(impl: Implementation, rows: Any, **options: Any) -> Any:
    """A map's output of out_axes=None: the sum of the rows."""
    return impl.map(psum(), out_axes=None, **options)(rows)


def beside(
    impl: Implementation, rows: Any, whole: Any, axis_name: str = "i", **options: Any
) -> Any:
    """A map that adds to each row an unmapped argument."""
    return impl.map(add(), axis_name, in_axes=(0, None), **options)(rows, whole)


FEEDS: Mapping[str, Feed] = table(
    Feed(
        "turned",
        "`x[::-1]`",
        lambda i, d, a: one_more(i, output(i, a)[::-1]),
        lambda a: a[::-1] * 2 + 1,
    ),
    Feed(
        "columns",
        "`x[:, 1:]`",
        lambda i, d, a: one_more(i, output(i, a)[:, 1:]),
        lambda a: a[:, 1:] * 2 + 1,
    ),
    Feed(
        "reshaped",
        "`x.reshape(8, 2, 2)`",
        lambda i, d, a: one_more(i, output(i, a).reshape(COUNT, 2, 2)),
        lambda a: a.reshape(COUNT, 2, 2) * 2 + 1,
        width=4,
    ),
    Feed(
        "transposed",
        "`x.T`",
        lambda i, d, a: one_more(i, output(i, a).T),
        lambda a: a.T * 2 + 1,
        width=COUNT,
    ),
    Feed("added", "`x + 1`", lambda i, d, a: one_more(i, output(i, a) + 1), lambda a: a * 2 + 2),
    Feed(
        "jitted",
        "`jit(...)(x)`",
        lambda i, d, a: one_more(i, jax.jit(lambda x: x + 1)(output(i, a))),
        lambda a: a * 2 + 2,
    ),
    Feed(
        "updated",
        "`x.at[0].set(0)`",
        lambda i, d, a: one_more(i, output(i, a).at[0].set(0)),
        lambda a: np.concatenate([a[:1] * 0, a[1:] * 2]) + 1,
    ),
    Feed(
        "rows-stacked",
        "`jnp.stack(list(x))`",
        lambda i, d, a: one_more(i, jnp.stack(list(output(i, a)))),
        lambda a: a * 2 + 1,
    ),
    Feed(
        "fetched",
        "`jax.device_get(x)`",
        lambda i, d, a: one_more(i, jax.device_get(output(i, a))),
        lambda a: a * 2 + 1,
    ),
    Feed(
        "row-whole",
        "a row, with in_axes=None",
        lambda i, d, a: beside(i, a, output(i, a)[3]),
        lambda a: a + a[3] * 2,
    ),
    Feed(
        "stack-whole",
        "all rows, with in_axes=None",
        lambda i, d, a: i.map(lambda x, y: x + y.sum(0), in_axes=(0, None))(a, output(i, a)),
        lambda a: a + a.sum(0) * 2,
    ),
    Feed(
        "with-numpy",
        "in one pytree with NumPy rows",
        lambda i, d, a: i.map(lambda t: t["a"] + t["b"])({"a": output(i, a), "b": a}),
        lambda a: a * 3,
    ),
    Feed(
        "with-itself",
        "together with its transpose",
        lambda i, d, a: (lambda x: i.map(add())(x, x[::-1]))(output(i, a)),
        lambda a: (a + a[::-1]) * 2,
    ),
    Feed(
        "out-1-to-in-1",
        "of out_axes=1, to in_axes=1",
        lambda i, d, a: one_more(i, output(i, a, out_axes=1), in_axes=1),
        lambda a: a * 2 + 1,
    ),
    Feed(
        "out-1-to-in-0",
        "of out_axes=1, to in_axes=0",
        lambda i, d, a: one_more(i, output(i, a, out_axes=1)),
        lambda a: a.T * 2 + 1,
        width=COUNT,
    ),
    Feed(
        "out-0-to-in-1",
        "of out_axes=0, to in_axes=1",
        lambda i, d, a: one_more(i, output(i, a), in_axes=1),
        lambda a: a.T * 2 + 1,
        width=COUNT,
    ),
    Feed(
        "out-none-whole",
        "of out_axes=None, to in_axes=None",
        lambda i, d, a: beside(i, a, total(i, a)),
        lambda a: a + a.sum(0),
    ),
    Feed(
        "out-none-to-in-0",
        "of out_axes=None, to in_axes=0",
        lambda i, d, a: one_more(i, total(i, a)),
        lambda a: a.sum(0) + 1,
        width=COUNT,
    ),
    Feed(
        "other-name",
        "to a mapped axis of another name",
        lambda i, d, a: one_more(i, output(i, a), "j"),
        lambda a: a * 2 + 1,
    ),
    Feed(
        "out-none-other-name",
        "of out_axes=None, to a mapped axis of another name",
        lambda i, d, a: beside(i, a, total(i, a), "j"),
        lambda a: a + a.sum(0),
    ),
    Feed(
        "other-order",
        "to the devices in reverse order",
        lambda i, d, a: one_more(i, output(i, a), devices=d[::-1]),
        lambda a: a * 2 + 1,
        elsewhere=True,
    ),
    Feed(
        "half-to-itself",
        "over half of the devices, to the same",
        lambda i, d, a: one_more(i, output(i, a[:HALF], devices=d[:HALF]), devices=d[:HALF]),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
    ),
    Feed(
        "half-to-other",
        "over half of the devices, to the other half",
        lambda i, d, a: one_more(i, output(i, a[:HALF], devices=d[:HALF]), devices=d[HALF:]),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
        elsewhere=True,
    ),
    Feed(
        "half-to-every-other",
        "over half of the devices, to every other device",
        lambda i, d, a: one_more(i, output(i, a[:HALF], devices=d[:HALF]), devices=d[::2]),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
        elsewhere=True,
    ),
    Feed(
        "half-to-default",
        "over the first half of the devices, to a mapped function without devices=",
        lambda i, d, a: one_more(i, output(i, a[:HALF], devices=d[:HALF])),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
        of_pmap=True,
    ),
    Feed(
        "last-half-to-default",
        "over the last half of the devices, to a mapped function without devices=",
        lambda i, d, a: one_more(i, output(i, a[:HALF], devices=d[HALF:])),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
        of_pmap=True,
    ),
    Feed(
        "slice-to-default",
        "`x[:4]`, to a mapped function without devices=",
        lambda i, d, a: one_more(i, output(i, a)[:HALF]),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
        of_pmap=True,
    ),
    Feed(
        "slice-to-half",
        "`x[:4]`, to half of the devices",
        lambda i, d, a: one_more(i, output(i, a)[:HALF], devices=d[:HALF]),
        lambda a: a[:HALF] * 2 + 1,
        SUBSET,
        elsewhere=True,
    ),
    Feed(
        "slice-to-other-half",
        "`x[4:]`, to the other half of the devices",
        lambda i, d, a: one_more(i, output(i, a)[HALF:], devices=d[HALF:]),
        lambda a: a[HALF:] * 2 + 1,
        SUBSET,
        elsewhere=True,
    ),
    Feed(
        "half-none-to-all",
        "of out_axes=None on half of the devices, to all",
        lambda i, d, a: beside(i, a, total(i, a[:HALF], devices=d[:HALF])),
        lambda a: a + a[:HALF].sum(0),
        SUBSET,
        elsewhere=True,
    ),
    Feed(
        "all-none-to-half",
        "of out_axes=None on all devices, to half",
        lambda i, d, a: beside(i, a[:HALF], total(i, a), devices=d[:HALF]),
        lambda a: a[:HALF] + a.sum(0),
        SUBSET,
        elsewhere=True,
    ),
)


@family(
    "silences.fed.{feed}",
    feed=FEEDS,
    claim="{feed.claim}",
    title="An output is passed to a mapped function: {feed.text}.",
    fact=lambda feed: (
        "silences.fed.same-devices" if feed.claim == BACK else "silences.fed.some-devices"
    ),
    cause=lambda feed: "shard-map-refuses-other-devices" if feed.elsewhere else "",
    needs=devices(COUNT),
    left_out="multi_controller tests several processes",
    expect=lambda feed: feed.columns(),
)
def fed(impl: Implementation, cluster: Cluster, feed: Feed) -> None:
    """Pass an output to a mapped function; the second call uses the wrappers of the first."""
    rows = cluster.rows(feed.width)
    cluster.twice(keep_maps(impl, lambda kept: feed.program(kept, cluster.devices, rows)))
