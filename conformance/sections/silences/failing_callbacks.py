"""A callback that raises on one device, beside a collective that needs all devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.aspects import LOGS
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.emissions import log_record
from conformance.spec.expectation import OfEachStep, every, in_steps, raises
from conformance.spec.family import table
from conformance.spec.observation import Step
from conformance.spec.topology import Place
from conformance.worker.deadlocks import run_all
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax

WIDTH = 3
CALL = "the call"
BAD_ROW = "the first row is bad"
CONTROL_SIZE = 200_000

FAILED = log_record(r"jax\._src\.callback", "ERROR", r"^jax\.pure_callback failed$")


def _failure_logged(place: Place, step: Step) -> tuple[bool, str]:
    count = sum(FAILED.agrees(one) for one in step.logs)
    return count == 1, f"{count} such records"


# The error of the host's function, and JAX's log record of it.
ARRIVES = in_steps(
    every(
        raises(
            "RuntimeError",
            f"CpuCallback error calling callback: .*ValueError: {BAD_ROW}",
        ),
        OfEachStep(
            "JAX logs that the callback of one device failed",
            _failure_logged,
            claims=frozenset({LOGS}),
            emits=(FAILED,),
        ),
    ),
    CALL,
)

DEFAULTS = Defaults(
    claim="pmap-silence.failing-callbacks",
    needs=devices(2),
    fresh=True,
    left_out="in several processes the devices of the others wait too",
    expect=everywhere(ARRIVES),
)


def checked(row: Any) -> Any:
    """Return the row; ValueError if it is the first of all."""
    if row[0] == 1:
        raise ValueError(BAD_ROW)
    return np.asarray(row)


def check_in_body(x: Any) -> Any:
    """Return the row, which a function on the host checks."""
    return jax.pure_callback(checked, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@dataclass(frozen=True, slots=True)
class Waits:
    """How a program waits for the result of a call."""

    key: str
    text: str
    wait: Callable[[Any], Any]


WAITS: Mapping[str, Waits] = table(
    Waits("fetched", "np.asarray", np.asarray),
    Waits("waited", "jax.block_until_ready", jax.block_until_ready),
)


@DEFAULTS.family(
    "silences.failing-callbacks.beside-psum.{waits}",
    waits=WAITS,
    title="A pure_callback raises on one device, beside a `psum`: `{waits.text}` of the result "
    "raises its error.",
    fact="silences.failing-callbacks.beside-psum",
)
def beside_psum(impl: Implementation, cluster: Cluster, waits: Waits) -> None:
    """A body that checks its row on the host, and sums the rows of all devices."""
    function = impl.map(lambda x: lax.psum(check_in_body(x), "i"))
    rows = impl.given(cluster.rows(WIDTH))
    cluster.step(CALL, lambda: _ended(lambda: waits.wait(function(rows))))


@DEFAULTS.family(
    "silences.failing-callbacks.map-of-its-own.{waits}",
    waits=WAITS,
    title="A pure_callback raises on one device, in a map before that of the `psum`: "
    "`{waits.text}` of its result raises its error.",
    fixes="silences.failing-callbacks.beside-psum.{waits}",
    fact="silences.failing-callbacks.map-of-its-own",
)
def map_of_its_own(impl: Implementation, cluster: Cluster, waits: Waits) -> None:
    """A map that checks the rows, whose result is waited for, before one that sums the rows."""
    check = impl.map(check_in_body)
    total = impl.map(lambda x: lax.psum(x, "i"))
    rows = impl.given(cluster.rows(WIDTH))

    def both() -> Any:
        checked_rows = check(rows)
        waits.wait(checked_rows)
        return waits.wait(total(checked_rows))

    cluster.step(CALL, lambda: _ended(both))


def _ended(call: Callable[[], Any]) -> Any:
    """Return what the call returns, or raise what it raises; Deadlock if it never ends."""
    found: list[Any] = []
    failed: list[Exception] = []

    def calling() -> None:
        try:
            found.append(call())
        except Exception as error:
            failed.append(error)

    # Little control work: in some versions the runtime ends the process some seconds later.
    run_all([calling], lambda: np.arange(CONTROL_SIZE).sum())
    if failed:
        raise failed[0]
    return found[0]
