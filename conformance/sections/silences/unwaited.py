"""Calls of one map, each on the result of the one before, none of which is waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import returns, steps
from conformance.spec.family import family, table
from conformance.spec.topology import Place
from conformance.worker.deadlocks import run_all
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax

COUNT = 8  # devices
PRIME = 9973  # sums of eight numbers below it are exact in float32
WIDTH = 200_000  # of a row, so that a call takes longer to run than to be started


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of `calls`; it waits for the result of each call, or for the last one alone."""

    key: str
    text: str
    calls: int
    waits: bool = False
    fixes: str | None = None

    def expected(self) -> Model:
        """Return the model of the first and last number of each row after the last call."""

        def model(place: Place) -> Any:
            # A number of a row depends on the numbers of its own column alone.
            rows = place.all_rows(WIDTH)[:, [0, -1]]
            for _ in range(self.calls + 1):
                rows = (2 * rows + rows.sum(0)) % PRIME
            return place.mine(rows)

        return model


LOOPS: Mapping[str, Loop] = table(
    Loop("8", "Eight calls with a psum, none of which is waited for", 8),
    Loop("128", "128 calls with a psum, none of which is waited for", 128),
    Loop(
        "128-waited",
        "128 calls with a psum, each of which is waited for by `block_until_ready`",
        128,
        waits=True,
        fixes="silences.unwaited.128",
    ),
)


@family(
    "silences.unwaited.{loop}",
    loop=LOOPS,
    claim="pmap-silence.collectives",
    title=lambda loop: f"{loop.text}, give what NumPy gives.",
    fact="silences.unwaited",
    needs=devices(COUNT),
    fresh=True,
    left_out="in several processes, each call waits for the other processes",
    expect=lambda loop: everywhere(steps(calls=returns(loop.expected()))),
)
def call_without_waiting(impl: Implementation, cluster: Cluster, loop: Loop) -> None:
    """Feed the result of a map with a psum back to it, and read the result of the last call."""
    function = impl.map(lambda x: (2 * x + lax.psum(x, "i")) % PRIME)
    rows = impl.given(cluster.rows(WIDTH))
    first = jax.block_until_ready(function(rows))
    cluster.step("calls", lambda: _after(function, first, loop))


def _after(function: Callable[[Any], Any], rows: Any, loop: Loop) -> Any:
    """Return the ends of each row after all calls; Deadlock if they never come."""
    found: list[Any] = []
    failed: list[Exception] = []

    def calls() -> None:
        result = rows
        try:
            for _ in range(loop.calls):
                result = function(result)
                if loop.waits:
                    result.block_until_ready()
            found.append(np.asarray(result)[:, [0, -1]])
        except Exception as error:
            failed.append(error)

    # Little control work: in some versions the runtime ends the process some seconds later.
    run_all([calls], lambda: np.arange(WIDTH).sum())
    if failed:
        raise failed[0]
    return found[0]
