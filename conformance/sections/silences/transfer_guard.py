"""What a mapped function and its output transfer under `jax.transfer_guard("disallow")`.

The guard refuses transfers that no device_put or device_get asks for. Each use runs once without it
first, so that nothing but a later use is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.answers import WIDTH, doubled
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_PROCESS, Place
from conformance.worker.protocols import Cluster, Implementation

FREE = "without the guard"

DEFAULTS = Defaults(
    claim="pmap-silence.transfer-guard",
    needs=devices(2),
    topologies=ONE_PROCESS,
    left_out="each process has a guard of its own",
)


@described("the rows, doubled twice")
def doubled_twice(place: Place) -> Any:
    return place.rows(WIDTH) * 4


@described("the first row, doubled")
def first_row(place: Place) -> Any:
    return place.rows(WIDTH)[0] * 2


@described("the first row, doubled, with its mapped axis")
def first_shard(place: Place) -> Any:
    return place.rows(WIDTH)[:1] * 2


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a mapped function `f`, of NumPy `rows` and of an output `out`; its result.

    `refused`: the guard must refuse it, as under legacy pmap.
    """

    key: str
    text: str
    use: Callable[[Any, Any, Any], Any]
    model: Model
    refused: bool = False

    def expected(self) -> Expectation:
        """Return what is expected without the guard, and twice under it."""
        refused = raises("RuntimeError", "INVALID_ARGUMENT: Disallowed host-to-device transfer")
        under = refused if self.refused else returns(self.model)
        return every(in_steps(returns(self.model), FREE), in_steps(under, *TWICE))


USES: Mapping[str, Use] = table(
    Use("rows", "a map of NumPy rows works", lambda f, rows, out: f(rows), doubled),
    Use("own-output", "a map of its own output works", lambda f, rows, out: f(out), doubled_twice),
    Use("first-row", "`out[0]` works", lambda f, rows, out: out[0], first_row),
    Use(
        "shard",
        "`out.addressable_shards[0].data` works",
        lambda f, rows, out: out.addressable_shards[0].data,
        first_shard,
    ),
    Use(
        "device-get",
        "`jax.device_get(out)` works",
        lambda f, rows, out: jax.device_get(out),
        doubled,
    ),
    # An output that was fetched before keeps its values on the host.
    Use(
        "fetched",
        "`np.asarray` of a new output works",
        lambda f, rows, out: np.asarray(f(out)),
        doubled_twice,
    ),
    Use(
        "iterated",
        "a loop over a new output works",
        lambda f, rows, out: np.stack([*f(out)]),
        doubled_twice,
    ),
    Use(
        "sum",
        "`out + 1` is refused",
        lambda f, rows, out: out + 1,
        lambda p: doubled(p) + 1,
        refused=True,
    ),
)


def guarded(use: Callable[[], Any]) -> Any:
    """Return what a use returns under the guard."""
    with jax.transfer_guard("disallow"):
        return use()


@DEFAULTS.family(
    "silences.transfer-guard.{use}",
    use=USES,
    title="Under `jax.transfer_guard('disallow')`, {use.text}.",
    expect=lambda use: everywhere(use.expected()),
)
def used(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A use of a map or its output, without the guard and twice under it."""
    function, rows = impl.map(lambda x: x * 2), cluster.rows(WIDTH)
    out = function(rows)

    def ask() -> Any:
        return use.use(function, rows, out)

    cluster.step(FREE, ask)
    cluster.twice(guarded, ask)


@DEFAULTS.clause(
    "silences.transfer-guard.rows-placed",
    title="Under `jax.transfer_guard('disallow')`, a map of rows that `device_put` placed works.",
    fixes="silences.transfer-guard.rows",
    expect=everywhere(every(in_steps(returns(doubled), FREE), in_steps(returns(doubled), *TWICE))),
)
def placed(impl: Implementation, cluster: Cluster) -> None:
    """A map of rows that `device_put` places as it requires."""
    function, rows = impl.map(lambda x: x * 2), cluster.rows(WIDTH)
    by_row = NamedSharding(impl.mesh("i"), P("i"))

    def ask() -> Any:
        return function(jax.device_put(rows, by_row))

    cluster.step(FREE, ask)
    cluster.twice(guarded, ask)
