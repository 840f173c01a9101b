"""`jax_debug_nans` in a job of several processes of which one alone has a NaN.

To find the operation, JAX computes what gave a NaN again, operation by operation, up to the NaN.
The other processes do not, so a collective before the NaN would meet their next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.spec.clause import processes
from conformance.spec.columns import everywhere
from conformance.spec.combining import by_process
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import OfEachStep, every, in_steps, raises, returns
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

CHECKED, NEXT = "the step with a NaN", "the next step"
FAILS = raises(FloatingPointError, r"^[Ii]nvalid value \(nan\) encountered in (parallel|sharded)")

DEFAULTS = Defaults(
    claim="pmap-silence.debugging",
    needs=processes(2),
    topologies=("2x2",),
    left_out="only a job of several processes has processes without a NaN",
    deadline_s=20.0,
)


def ratio(x: Any) -> Any:
    """One, but NaN of the first row of all, which is 1."""
    return (x - 1) / (x - 1)


def ratio_then_sum(x: Any) -> Any:
    """The same, before a psum."""
    return ratio(x), jax.lax.psum(x, "i")


def sum_then_ratio(x: Any) -> Any:
    """The same, after a psum."""
    total = jax.lax.psum(x, "i")
    return ratio(x), total


@described("ones")
def ones(place: Place) -> Any:
    return np.ones_like(place.rows())


@described("the sum of all rows on each device")
def summed(place: Place) -> Any:
    return np.full_like(place.rows(), place.all_rows().sum())


@described("a thousand times the sum of all rows on each device")
def thousandfold(place: Place) -> Any:
    return summed(place) * 1000


@described("ones, and the sum of all rows on each device")
def ones_and_sum(place: Place) -> Any:
    return ones(place), summed(place)


@dataclass(frozen=True, slots=True)
class Checked:
    """A body, and what a process without a NaN gets."""

    key: str
    text: str
    body: Callable[[Any], Any]
    others: OfEachStep


BODIES: Mapping[str, Checked] = table(
    Checked("no-collective", "no collective", ratio, returns(ones)),
    Checked("before-psum", "a psum after the NaN", ratio_then_sum, returns(ones_and_sum)),
    Checked("after-psum", "a psum before the NaN", sum_then_ratio, returns(ones_and_sum)),
)


@DEFAULTS.family(
    "multi_controller.nan-check.{checked}",
    checked=BODIES,
    title=(
        "Under `jax_debug_nans`, one process finds a NaN in a function with {checked.text}: it "
        "raises, and the next psum is right in all processes."
    ),
    expect=lambda checked: everywhere(
        every(
            in_steps(
                by_process(
                    lambda place: place.process == 0,
                    FAILS,
                    checked.others,
                    "process 0 raises FloatingPointError, the others return",
                ),
                CHECKED,
            ),
            in_steps(returns(thousandfold), NEXT),
        )
    ),
)
def in_one_process(impl: Implementation, cluster: Cluster, checked: Checked) -> None:
    """A step with a NaN in process 0, then a psum in all processes."""
    rows = impl.given(cluster.rows())
    step = impl.map(lambda x: checked.body(x))
    total = impl.map(lambda x: jax.lax.psum(x * 1000, "i"))
    with jax.debug_nans(True):
        cluster.step(CHECKED, step, rows)
        cluster.step(NEXT, total, rows)


@described("one on each device")
def one_nan(place: Place) -> Any:
    return np.ones(place.topology.devices_per_process, np.int32)


@DEFAULTS.clause(
    "multi_controller.nan-check.counted",
    title=(
        "A function counts NaNs by a psum, without `jax_debug_nans`: all processes learn of one in "
        "process 0, and the next psum is right in all processes."
    ),
    fixes="multi_controller.nan-check.after-psum",
    expect=everywhere(
        every(in_steps(returns(one_nan), CHECKED), in_steps(returns(thousandfold), NEXT))
    ),
)
def counted(impl: Implementation, cluster: Cluster) -> None:
    """A step with a NaN in process 0, which all processes learn; then a psum in all."""
    rows = impl.given(cluster.rows())

    def body(x: Any) -> Any:
        one, _ = sum_then_ratio(x)
        return jax.lax.psum(jnp.isnan(one).astype(np.int32), "i")

    cluster.step(CHECKED, impl.map(body), rows)
    cluster.step(NEXT, impl.map(lambda x: jax.lax.psum(x * 1000, "i")), rows)
