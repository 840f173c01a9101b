"""A body that asks for its device's index in a loop: at each step, or once before the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax

WIDTH = 3
STEPS = 3

DEFAULTS = Defaults(
    claim="pmap-silence.loops-and-nests",
    needs=devices(2),
    left_out="multi_controller tests loops with axis_index in several processes",
)


@described("three times in turn twice the row and its device's index added")
def three_steps(place: Place) -> Any:
    rows = place.all_rows(WIDTH)
    index = np.arange(len(rows), dtype=np.float32)[:, None]
    for _ in range(STEPS):
        rows = 2 * rows + index
    return place.mine(rows)


def fori_loop(x: Any) -> Any:
    """Ask for the index in each step of a fori_loop."""
    return lax.fori_loop(0, STEPS, lambda _, carry: 2 * carry + lax.axis_index("i"), x)


def scan(x: Any) -> Any:
    """Ask for the index in each step of a scan."""
    found, _ = lax.scan(
        lambda carry, _: (2 * carry + lax.axis_index("i"), None), x, None, length=STEPS
    )
    return found


def before_fori_loop(x: Any) -> Any:
    """Ask for the index once, before a fori_loop."""
    index = lax.axis_index("i")
    return lax.fori_loop(0, STEPS, lambda _, carry: 2 * carry + index, x)


def before_scan(x: Any) -> Any:
    """Ask for the index once, before a scan."""
    index = lax.axis_index("i")
    found, _ = lax.scan(lambda carry, _: (2 * carry + index, None), x, None, length=STEPS)
    return found


@dataclass(frozen=True, slots=True)
class Loop:
    """A body with a loop that adds the device's index in each step."""

    key: str
    text: str
    body: Callable[[Any], Any]
    fixes: str | None = None


LOOPS: Mapping[str, Loop] = table(
    Loop("fori-loop", "calls `axis_index` in a `fori_loop`", fori_loop),
    Loop("scan", "calls `axis_index` in a `scan`", scan),
    Loop(
        "before-fori-loop",
        "calls `axis_index` before a `fori_loop` that uses the index",
        before_fori_loop,
        fixes="silences.index-in-loops.fori-loop",
    ),
    Loop(
        "before-scan",
        "calls `axis_index` before a `scan` that uses the index",
        before_scan,
        fixes="silences.index-in-loops.scan",
    ),
)


@DEFAULTS.family(
    "silences.index-in-loops.{loop}",
    loop=LOOPS,
    title="A mapped body {loop.text}.",
    expect=everywhere(twice(returns(three_steps))),
)
def index_in_a_loop(impl: Implementation, cluster: Cluster, loop: Loop) -> None:
    """A loop that needs the device's index."""
    cluster.twice(impl.map(lambda x: loop.body(x)), impl.given(cluster.rows(WIDTH)))
