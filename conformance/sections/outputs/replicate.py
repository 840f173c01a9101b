"""flax's `replicate`: a stack with one copy per device, a map of it, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS
from conformance.catalogue.topology import Place
from conformance.judging.expectation import every, returns, sharded, steps


def params() -> Any:
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def stacked(place: Place) -> Any:
    """one copy per device of this process, stacked"""
    return np.tile(params(), (place.topology.devices_per_process, 1, 1))


def _leading(place: Place, s: Mapping[str, Any]) -> bool:
    if s["type"] == "PmapSharding":
        return True
    return bool(s["spec"][:1] not in ([], [None])) and not any(s["spec"][1:])


@clause(
    "outputs.replicate.stacks",
    claim="migrate-pmap.replicate-stacks-and-shards",
    needs=devices(2),
    requires=("flax",),
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            steps(
                replicated=returns(stacked),
                mapped=returns(stacked),
                mapped_again=returns(stacked),
            ),
            sharded("sharded along the stacked dimension", _leading),
        ),
    ),
)
def replicate_stacks(impl: Any, cluster: Any) -> None:
    """flax's `replicate` gives a stack with one copy per device, which a map takes."""
    from flax.jax_utils import replicate

    impl.select()
    state = cluster.step("replicated", lambda: replicate({"params": params()}))
    step = impl.map(lambda x: x)
    given = state or {"params": stacked(cluster)}
    cluster.step("mapped", lambda: step(given["params"]))
    cluster.step("mapped again", lambda: step(given["params"]))


@clause(
    "outputs.replicate.round-trip",
    claim="migrate-pmap.replicate-stacks-and-shards",
    needs=devices(2),
    requires=("flax",),
    expect=dict.fromkeys(IMPLEMENTATIONS, returns(lambda place: params())),
)
def round_trip(impl: Any, cluster: Any) -> None:
    """The document's example: `replicate`, a mapped step, `unreplicate`."""
    from flax.jax_utils import replicate, unreplicate

    impl.select()
    step = impl.map(lambda x: x)

    def run() -> Any:
        train_state = replicate({"params": params()})
        return unreplicate(jax.tree.map(step, train_state))

    cluster.twice(run)
