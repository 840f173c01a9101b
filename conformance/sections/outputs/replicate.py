"""flax's `replicate`: a stack with one copy per device, a mapped function of it, and
`unreplicate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.spec.arrays import dealt_out, returns_array
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, returns, sharded, steps
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

STACKS = "migrate-pmap.replicate-stacks-and-shards"


def params() -> Any:
    """The parameters of a small model."""
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@described("one copy per device of this process, stacked")
def copies(place: Place) -> Any:
    return np.tile(params(), (place.topology.devices_per_process, 1, 1))


@described("one copy per device of this process, stacked, under the parameters' name")
def parameters_copied(place: Place) -> Any:
    return {"params": copies(place)}


@described("one copy")
def one_copy(place: Place) -> Any:
    return {"params": params()}


def _leading(place: Place, s: Mapping[str, Any]) -> bool:
    if s["type"] != "NamedSharding":
        return dealt_out(place, s)
    first = s["spec"][0] if s["spec"] else None
    here = place.topology.devices_per_process
    return s["mesh"].get(first) == here == len(s["devices"]) and not any(s["spec"][1:])


ONE_PROCESS_SHOWS_ALL = "replicate uses this process's devices only"

DEFAULTS = Defaults(claim=STACKS, left_out=ONE_PROCESS_SHOWS_ALL, requires=("flax",))


@DEFAULTS.clause(
    "outputs.replicate.stacks",
    needs=devices(2),
    expect=everywhere(
        every(
            steps(
                replicated=returns(parameters_copied),
                mapped=returns(copies),
                mapped_again=returns(copies),
            ),
            sharded("sharded along the stacked dimension", _leading),
        ),
    ),
)
def replicate_stacks(impl: Implementation, cluster: Cluster) -> None:
    """flax's `replicate` returns a stack with one copy per device, which a mapped function
    accepts.
    """
    from flax.jax_utils import replicate

    impl.select()
    state = cluster.step("replicated", lambda: replicate({"params": params()}))
    step = impl.map(lambda x: x)
    given = state or {"params": copies(cluster)}
    cluster.step("mapped", lambda: step(given["params"]))
    cluster.step("mapped again", lambda: step(given["params"]))


@DEFAULTS.clause(
    "outputs.replicate.round-trip", needs=devices(2), expect=everywhere(returns_array(one_copy))
)
def round_trip(impl: Implementation, cluster: Cluster) -> None:
    """The document's example: `replicate`, a mapped step, `unreplicate`."""
    from flax.jax_utils import replicate, unreplicate

    impl.select()
    step = impl.map(lambda x: x)

    def run() -> Any:
        train_state = replicate({"params": params()})
        return unreplicate(jax.tree.map(step, train_state))

    cluster.twice(run)
