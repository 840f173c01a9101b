"""Outputs moved to one device by `device=`, by shardings of a jit, and by a constraint.

Under legacy pmap each of these moves an output, or a row of it, to the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from numpy.typing import NDArray

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.aspects import COMMITTED, DEVICES
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.combining import on_one_device
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, returns, twice
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.outputs-moved-to-one-device",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
)

Rows = NDArray[Any]
THERE = 1  # not the first, on which legacy pmap's outputs are computed with anyway


@dataclass(frozen=True, slots=True)
class Move:
    """A way to move an output to a device, and what NumPy makes of the same rows."""

    key: str
    text: str
    move: Callable[[Any, jax.Device], Any]
    by_numpy: Callable[[Rows], Any] = lambda a: a
    fixes: str | None = None

    def columns(self) -> Columns:
        """NumPy's numbers, on the second device, committed."""

        def model(place: Place) -> Any:
            return self.by_numpy(place.rows(WIDTH) * 2)

        right = returns(model, text=f"what NumPy gives for {self.text}")
        text = f"on [{THERE}], committed, as legacy's"
        claims = {COMMITTED, DEVICES}
        there = on_one_device(text, lambda _: THERE, committed=True, claims=claims)
        return everywhere(twice(every(right, there)))


def tripled(x: Any) -> Any:
    return x * 3


def by_jit(option: str) -> Callable[[Any, jax.Device], Any]:
    """A jit with the sharding of the device."""
    return lambda out, device: jax.jit(tripled, **{option: SingleDeviceSharding(device)})(out)


def half(a: Any) -> Any:
    return a.astype(np.float16)


def first(a: Any) -> Any:
    return a[0]


def constrained(out: Any, device: jax.Device) -> Any:
    return jax.lax.with_sharding_constraint(out, SingleDeviceSharding(device))


def constrained_under_jit(out: Any, device: jax.Device) -> Any:
    return jax.jit(lambda x: constrained(x * 3, device))(out)


MOVES: Mapping[str, Move] = table(
    Move("asarray", "`jnp.asarray(out, device=device)`", lambda out, d: jnp.asarray(out, device=d)),
    Move(
        "array-of-row",
        "`jnp.array(out[0], device=device)`",
        lambda out, d: jnp.array(out[0], device=d),
        first,
    ),
    Move(
        "astype",
        "`out.astype(jnp.float16, device=device)`",
        lambda out, d: out.astype(jnp.float16, device=d),
        half,
    ),
    Move(
        "jit-out-shardings",
        "`jax.jit(f, out_shardings=SingleDeviceSharding(device))(out)`",
        by_jit("out_shardings"),
        tripled,
    ),
    Move(
        "jit-in-shardings",
        "`jax.jit(f, in_shardings=SingleDeviceSharding(device))(out)`",
        by_jit("in_shardings"),
        tripled,
    ),
    Move(
        "constraint",
        "`jax.lax.with_sharding_constraint(out, SingleDeviceSharding(device))`",
        constrained,
    ),
    Move(
        "constraint-under-jit",
        "with_sharding_constraint to `SingleDeviceSharding(device)` in a jit of an output",
        constrained_under_jit,
        tripled,
    ),
    Move(
        "zeros-like",
        "`jnp.zeros_like(out, device=device)`",
        lambda out, d: jnp.zeros_like(out, device=d),
        np.zeros_like,
    ),
    Move("to-device", "`out.to_device(device)`", lambda out, d: out.to_device(d)),
    Move(
        "put",
        "`jax.device_put(out, device)`",
        jax.device_put,
        fixes="silences.moved.asarray",
    ),
    Move(
        "put-row",
        "`jax.device_put(out[0], device)`",
        lambda out, d: jax.device_put(out[0], d),
        first,
        "silences.moved.array-of-row",
    ),
    Move(
        "put-then-cast",
        "`jax.device_put(out, device).astype(jnp.float16)`",
        lambda out, d: jax.device_put(out, d).astype(jnp.float16),
        half,
        "silences.moved.astype",
    ),
    Move(
        "put-then-jit",
        "`jax.jit(f)(jax.device_put(out, device))`",
        lambda out, d: jax.jit(tripled)(jax.device_put(out, d)),
        tripled,
        "silences.moved.jit-out-shardings",
    ),
)


@DEFAULTS.family(
    "silences.moved.{move}",
    move=MOVES,
    title="The result of {move.text} is on that device, committed.",
    fact="silences.moved.{move}",
    expect=lambda move: move.columns(),
)
def moved(impl: Implementation, cluster: Cluster, move: Move) -> None:
    """An output moved to the second device, twice."""
    out = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    cluster.twice(move.move, out, jax.local_devices()[THERE])
