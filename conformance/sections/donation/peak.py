"""How much memory a donating call needs at its peak, in multiples of what it is given.

The figure is what a user plans with: the bytes of the argument, which are there before the call,
and whatever the call adds to them at one time. So a buffer that is reused makes it 1, and a copy
beside the original 2. An array of a known size, measured in the same way, shows how exact that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, every, noted, raises, returns, steps
from conformance.probing.memory import known_peak, meter_of, peak_with
from conformance.probing.recording import local_rows
from conformance.sections.donation.kinds import KINDS, ONE_AND_TWO, Call

MIB = 2**20
GIVEN_BYTES = 64 * MIB  # of the argument on this process's devices, as the map expects it
SHOWN = 4  # elements of each row that are compared, as the whole would be too much to carry
RESOLUTION = 0.15  # of the argument; the known allocation shows that a peak is as exact as that

MULTIPLE = "memory"  # the key that the report reads

NO_EXTRA = "migrate-pmap.donation-no-extra-memory"
SPIKE = "migrate-pmap.donation-memory-spike"


def width_of(cluster: Any) -> int:
    """The float32 elements of each row, one row per device of this process."""
    return GIVEN_BYTES // 4 // len(cluster.local_devices)


def local_bytes(array: Any) -> int:
    """The bytes of an array in this process."""
    if not isinstance(array, jax.Array):
        return int(array.nbytes)
    return sum(shard.data.nbytes for shard in array.addressable_shards)


def measured(
    cluster: Any,
    name: str,
    what: str,
    make: Callable[[], Any],
    call: Any,
) -> float:
    """A step that notes, as the report reads it, the multiple that `call` needs.

    `make` gives the call's argument and its bytes.
    """
    sizes: list[int] = []

    def made() -> Any:
        argument, size = make()
        sizes.append(size)
        return argument

    def run() -> Any:
        return peak_with(
            made,
            lambda one: jax.block_until_ready(call(one)),
            meter=meter_of(cluster.devices),
        )

    most = cluster.step(name, run)
    if most is None:
        return math.nan
    multiple = float(most / sizes[-1])
    cluster.note(MULTIPLE, {"what": what, "multiple": round(multiple, 2)})
    return multiple


def control(cluster: Any) -> None:
    """A known allocation, as the measure of the measure."""
    known = cluster.step("known", known_peak, GIVEN_BYTES)
    if known is not None:
        cluster.note("known", round(known / GIVEN_BYTES, 2))


KNOWN = steps(
    known=noted(
        "known",
        f"an allocation of known size is measured as 1 within {RESOLUTION}",
        lambda _, seen: abs(seen - 1) <= RESOLUTION,
    )
)


def peak(impl: Any, cluster: Any, kind: str) -> None:
    """A known allocation and the donating call are measured; the call's values are compared."""
    this, width = KINDS[kind], width_of(cluster)
    control(cluster)
    function = this.map(impl)

    def make() -> tuple[Call, int]:
        call = this.call(impl, cluster, width)
        return call, sum(local_bytes(one.array) for one in (*call.donated, *call.kept))

    measured(cluster, "peak", this.said, make, lambda call: call.made(function))
    call = make()[0]
    cluster.step("values", lambda: local_rows(jax.tree.leaves(call.made(function))[0])[:, :SHOWN])


def of_input(wanted: float, text: str) -> Expectation:
    """A peak of `wanted` times the argument, within the resolution."""

    def holds(_: Place, seen: Any) -> bool:
        return bool(abs(seen["multiple"] - wanted) <= RESOLUTION)

    return steps(peak=noted(MULTIPLE, text, holds))


ONCE = of_input(1, "1 time the argument: its buffers are reused")
TWICE = of_input(2, "2 times the argument: it is copied")


def _at_least(least: float, text: str) -> Expectation:
    def holds(_: Place, seen: Any) -> bool:
        return bool(seen["multiple"] >= least - RESOLUTION)

    return steps(peak=noted(MULTIPLE, text, holds))


COPIED = _at_least(2, "2 times the argument or more: it is copied")
PARTLY_COPIED = _at_least(1.5, "1.5 times the argument or more: a part of it is copied")
INCOMPATIBLE = raises(ValueError, "Received incompatible devices")


def values(kind: str) -> Expectation:
    """The first elements of each row of the result."""

    def first(place: Place) -> Any:
        width = GIVEN_BYTES // 4 // place.topology.devices_per_process
        return KINDS[kind].model(place, width)[:, :SHOWN]

    return steps(values=returns(first, text="the right first elements of each row"))


def _peak(
    kind: str,
    claim: str,
    title: str,
    expect: dict[str, Expectation | None],
    topologies: tuple[str, ...] = ONE_PROCESS,
) -> None:
    refused = every(KNOWN, steps(peak=INCOMPATIBLE, values=INCOMPATIBLE))
    clause(
        f"donation.peak.{kind}",
        claim=claim,
        needs=devices(2),
        topologies=topologies,
        parameters={"kind": kind},
        fresh=True,
        title=title.format(KINDS[kind].said),
        expect={
            name: refused if peaks is None else every(KNOWN, peaks, values(kind))
            for name, peaks in expect.items()
        },
    )(peak)


def _expected(
    legacy: Expectation | None, new: Expectation | None, shard_map: Expectation | None
) -> dict[str, Expectation | None]:
    return {LEGACY_PMAP: legacy, NEW_PMAP: new, SHARD_MAP: shard_map}


_ALONE = "Donated, {} needs no memory beyond its own."
_BESIDE = "Donated, {} is there twice at the peak."

_peak("own-output", NO_EXTRA, _ALONE, _expected(ONCE, ONCE, ONCE), ONE_AND_TWO)
_peak("placed", NO_EXTRA, _ALONE, _expected(ONCE, ONCE, ONCE))
_peak(
    "not-donated",
    NO_EXTRA,
    "Not donated, a map's own output is there beside the result: the control.",
    _expected(TWICE, TWICE, TWICE),
)
_peak("numpy", SPIKE, _BESIDE, _expected(TWICE, TWICE, TWICE))
# How legacy and jit copy is said nowhere: that they do is all that can be expected.
# A program that reshards needs up to 3 times: its devices' temporaries may or may not coincide.
_peak("other-spec", SPIKE, _BESIDE, _expected(COPIED, COPIED, COPIED))
# Under shard_map each process holds the whole of it, and needs but its own rows.
_peak("uncommitted", SPIKE, _BESIDE, _expected(COPIED, TWICE, PARTLY_COPIED), ONE_AND_TWO)
_peak("one-device", SPIKE, _BESIDE, _expected(COPIED, TWICE, None), ONE_AND_TWO)
_peak("other-devices", SPIKE, _BESIDE, _expected(COPIED, TWICE, None))


# --- A training step

BATCH = 4  # rows of the batch of each device
FLOAT_BYTES = 4
LEAVES = 3  # of the state: the weights and two moments of the same shape
KEPT_PART = 0.5  # of the first moments


def side_of(place: Place) -> int:
    """Rows and columns of each device's weights, for a state of as many bytes as any argument."""
    return math.isqrt(GIVEN_BYTES // 4 // LEAVES // place.topology.devices_per_process)


def trained(state: Any, x: Any) -> Any:
    """One step of data-parallel training: a loss that is quadratic in the weights, with moments."""
    target = jnp.ones((BATCH, x.shape[-1]), np.float32)

    def loss(weights: Any) -> Any:
        return ((x @ weights - target) ** 2).sum() / 2

    gradient = jax.lax.psum(jax.grad(loss)(state["weights"]), "i")
    first = state["first"] * KEPT_PART + gradient
    second = state["second"] * KEPT_PART + gradient * gradient
    return {"weights": state["weights"] - first, "first": first, "second": second}


def state_after(place: Place) -> Any:
    """the first elements of the state after one step from zero"""
    gradient = np.float32(-BATCH * place.topology.devices)
    rows = np.ones((place.topology.devices_per_process, SHOWN), np.float32)
    return [rows * gradient, rows * gradient**2, rows * -gradient]


def training_step(impl: Any, cluster: Any) -> None:
    """A training step with a donated state, and the same step without; both are measured.

    How much is saved varies from call to call, as its gradients have to be somewhere and devices
    need theirs at once or one after the other. What the program takes over does not vary.
    """
    control(cluster)
    side = side_of(cluster)
    x = impl.given(np.ones((len(cluster.local_devices), BATCH, side), np.float32))
    ones = impl.given(np.ones(len(cluster.local_devices), np.float32))
    zeros = impl.map(
        lambda one: {
            name: jnp.zeros((side, side), np.float32) * one
            for name in ("weights", "first", "second")
        }
    )

    def make() -> tuple[Any, int]:
        state = jax.block_until_ready(zeros(ones))
        return state, sum(map(local_bytes, jax.tree.leaves(state)))

    keeping, giving = impl.map(trained), impl.map(trained, donate_argnums=(0,))
    most = measured(
        cluster,
        "kept",
        "a training step that keeps the old state",
        make,
        lambda state: keeping(state, x),
    )
    least = measured(
        cluster,
        "donated",
        "a training step with a donated state",
        make,
        lambda state: giving(state, x),
    )
    cluster.note("saved", round(most - least, 2))

    def values() -> Any:
        state = giving(make()[0], x)
        return jax.tree.map(lambda leaf: local_rows(leaf)[:, 0, :SHOWN], state)

    seen = cluster.compiled("values", values)
    if seen is not None:
        taken = max(program["memory"]["alias"] for program in seen.programs)
        cluster.note("bytes aliased", [taken, LEAVES * side * side * FLOAT_BYTES])


clause(
    "donation.peak.training-step",
    claim=NO_EXTRA,
    needs=devices(2),
    fresh=True,
    title="A training step takes over a donated state, and needs no more memory than without.",
    expect=dict.fromkeys(
        IMPLEMENTATIONS,
        every(
            KNOWN,
            steps(
                kept=noted(
                    MULTIPLE,
                    "the old state and the new one, or more",
                    lambda _, seen: bool(seen["multiple"] >= 2 - RESOLUTION),
                ),
                donated=noted(
                    "saved",
                    "no more than without donation",
                    lambda _, seen: bool(seen >= -RESOLUTION),
                ),
                values=returns(state_after),
            ),
            steps(
                values=noted(
                    "bytes aliased",
                    "the compiled program takes over every byte of the state",
                    lambda _, seen: seen[0] == seen[1],
                )
            ),
        ),
    ),
)(training_step)
