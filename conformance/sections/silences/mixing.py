"""Outputs combined with other arrays in one operation, and the sharding of the result.

Under legacy pmap the other operand decided on which device the result is, and an output alone moved
it to the first device, uncommitted. Tested are slices, other outputs, arrays on one device, on
other meshes, and with Explicit axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.spec.aspects import COMMITTED, SHARDING_TYPE
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.combining import of_result
from conformance.spec.expectation import every, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.topology import Place
from conformance.worker.bodies import double, psum
from conformance.worker.protocols import Cluster, Implementation

Rows = NDArray[Any]

COUNT = 8  # devices
WIDTH = 3  # of a row
ALL = tuple(range(COUNT))
ONES = np.ones(WIDTH, np.float32)
P = jax.sharding.PartitionSpec


@dataclass(frozen=True, slots=True)
class Mix:
    """A `program` of an implementation, its devices and the rows, and its NumPy model.

    Legacy pmap's result is on `there`, and `committed` to it or not.
    """

    key: str
    text: str
    program: Callable[[Implementation, list[jax.Device], Rows], Callable[[], Any]]
    model: Callable[[Rows], Any]
    there: tuple[int, ...] = (0,)
    committed: bool = False

    def as_legacy(self) -> Expectation:
        """The right values, where legacy's are."""

        def model(place: Place) -> Any:
            return self.model(place.all_rows(WIDTH))

        right = returns(model, text=f"what NumPy gives for {self.text}")
        return twice(every(right, lies(self.there, self.committed)))


def lies(there: tuple[int, ...], committed: bool) -> Expectation:
    """Each array is over these devices, in a sharding for as many, and committed to them or to
    none.
    """
    kinds = ("SingleDeviceSharding",) if len(there) == 1 else ("NamedSharding", "PmapSharding")

    def check_step(_: Place, step: Step) -> tuple[bool, str]:
        seen = [
            (sorted(leaf.sharding["devices"]), leaf.committed, leaf.sharding["type"])
            for leaf in step.leaves
            if leaf.sharding
        ]
        right = bool(seen) and all(
            (where, bound) == (sorted(there), committed) and kind in kinds
            for where, bound, kind in seen
        )
        described = [
            f"on {where}, {commitment(bound)}" + ("" if kind in kinds else f", a {kind}")
            for where, bound, kind in seen
        ]
        return right, "; ".join(described)

    text = f"on {list(there)}, {commitment(committed)}, as legacy's"
    return of_result(text, check_step, claims={COMMITTED, SHARDING_TYPE})


def commitment(committed: bool | None) -> str:
    """In words."""
    return "committed" if committed else "not committed"


def output(impl: Implementation, rows: Rows, axis_name: str = "i", **options: Any) -> Any:
    """A map's output: the rows, doubled."""
    return impl.map(double(), axis_name, **options)(rows)


def total(impl: Implementation, rows: Rows) -> Any:
    """A map's output that is equal on all devices: the sum of the rows."""
    return impl.map(psum(), out_axes=None)(rows)


def on(device: jax.Device, value: Rows) -> Any:
    """Committed to one device."""
    return jax.device_put(value, device)


def over(value: Rows, devices: list[jax.Device], *spec: str, explicit: bool = False) -> Any:
    """Over a mesh of an axis of another name, `k`."""
    kind = jax.sharding.AxisType.Explicit if explicit else jax.sharding.AxisType.Auto
    mesh = jax.sharding.Mesh(np.array(devices), ("k",), axis_types=(kind,))
    return jax.device_put(value, jax.sharding.NamedSharding(mesh, P(*spec)))


Make = Callable[[Implementation, list[jax.Device], Rows], Any]


def adding(left: Make, right: Make, jit: bool = False) -> Any:
    """The program that adds the two."""

    def program(impl: Implementation, devices: list[jax.Device], rows: Rows) -> Callable[[], Any]:
        x, y = left(impl, devices, rows), right(impl, devices, rows)
        add = jax.jit(lambda x, y: x + y) if jit else lambda x, y: x + y
        return lambda: add(x, y)

    return program


def row(index: int) -> Make:
    """A row of an output."""
    return lambda impl, devices, rows: output(impl, rows)[index]


def whole(impl: Implementation, devices: list[jax.Device], rows: Rows) -> Any:
    """An output."""
    return output(impl, rows)


def equal(impl: Implementation, devices: list[jax.Device], rows: Rows) -> Any:
    """An output with out_axes=None."""
    return total(impl, rows)


MIXES: Mapping[str, Mix] = table(
    Mix(
        "row-numpy",
        "a row and a NumPy array",
        adding(row(0), lambda *_: ONES),
        lambda a: a[0] * 2 + 1,
    ),
    Mix(
        "row-new",
        "a row and a new jax.Array",
        adding(row(3), lambda *_: jnp.ones(WIDTH)),
        lambda a: a[3] * 2 + 1,
    ),
    Mix("row-row", "two rows", adding(row(0), row(5)), lambda a: a[0] * 2 + a[5] * 2),
    Mix(
        "row-device-0",
        "a row and an array on device 0",
        adding(row(0), lambda _, d, a: on(d[0], ONES)),
        lambda a: a[0] * 2 + 1,
        (0,),
        True,
    ),
    Mix(
        "row-device-3",
        "a row and an array on device 3",
        adding(row(0), lambda _, d, a: on(d[3], ONES)),
        lambda a: a[0] * 2 + 1,
        (3,),
        True,
    ),
    Mix(
        "row-3-device-0",
        "the fourth row and an array on device 0",
        adding(row(3), lambda _, d, a: on(d[0], ONES)),
        lambda a: a[3] * 2 + 1,
        (0,),
        True,
    ),
    Mix(
        "jit-row-device-3",
        "a row and an array on device 3, under jit",
        adding(row(0), lambda _, d, a: on(d[3], ONES), jit=True),
        lambda a: a[0] * 2 + 1,
        (3,),
        True,
    ),
    Mix(
        "slice-device-3",
        "a slice and an array on device 3",
        adding(lambda i, d, a: output(i, a)[2:4], lambda _, d, a: on(d[3], a[2:4])),
        lambda a: a[2:4] * 3,
        (3,),
        True,
    ),
    Mix("numpy", "an output and a NumPy array", adding(whole, lambda i, d, a: a), lambda a: a * 3),
    Mix(
        "new",
        "an output and a new jax.Array",
        adding(whole, lambda i, d, a: jnp.asarray(a)),
        lambda a: a * 3,
    ),
    Mix(
        "device-0",
        "an output and an array on device 0",
        adding(whole, lambda _, d, a: on(d[0], a)),
        lambda a: a * 3,
        (0,),
        True,
    ),
    Mix(
        "device-3",
        "an output and an array on device 3",
        adding(whole, lambda _, d, a: on(d[3], a)),
        lambda a: a * 3,
        (3,),
        True,
    ),
    Mix(
        "jit-device-0",
        "an output and an array on device 0, under jit",
        adding(whole, lambda _, d, a: on(d[0], a), jit=True),
        lambda a: a * 3,
        (0,),
        True,
    ),
    Mix(
        "other-name",
        "outputs of mapped functions with two axis names",
        adding(whole, lambda i, d, a: output(i, a, "j")),
        lambda a: a * 4,
    ),
    Mix(
        "other-order",
        "outputs of mapped functions over the devices in two orders",
        adding(whole, lambda i, d, a: output(i, a, devices=d[::-1])),
        lambda a: a * 4,
    ),
    Mix(
        "other-devices",
        "outputs of mapped functions over two halves of the devices",
        adding(
            lambda i, d, a: output(i, a[:4], devices=d[:4]),
            lambda i, d, a: output(i, a[4:], devices=d[4:]),
        ),
        lambda a: a[:4] * 2 + a[4:] * 2,
    ),
    Mix(
        "other-count",
        "sums of outputs of mapped functions over all devices and over half of them",
        adding(
            lambda i, d, a: output(i, a).sum(0),
            lambda i, d, a: output(i, a[:4], devices=d[:4]).sum(0),
        ),
        lambda a: a.sum(0) * 2 + a[:4].sum(0) * 2,
    ),
    Mix(
        "mesh-other-name",
        "an output and an array over a mesh whose axis has another name",
        adding(whole, lambda _, d, a: over(a, d, "k")),
        lambda a: a * 3,
        ALL,
        True,
    ),
    Mix(
        "mesh-replicated",
        "an output and an array replicated over a mesh whose axis has another name",
        adding(whole, lambda _, d, a: over(a, d)),
        lambda a: a * 3,
        ALL,
        True,
    ),
    Mix(
        "mesh-other-order",
        "an output and an array over the devices in another order",
        adding(whole, lambda _, d, a: over(a, d[::-1], "k")),
        lambda a: a * 3,
        ALL,
        True,
    ),
    Mix(
        "mesh-explicit",
        "an output and an array over an Explicit axis",
        adding(whole, lambda _, d, a: over(a, d, "k", explicit=True)),
        lambda a: a * 3,
        ALL,
        True,
    ),
    Mix(
        "jit-mesh-explicit",
        "an output and an array over an Explicit axis, under jit",
        adding(whole, lambda _, d, a: over(a, d, "k", explicit=True), jit=True),
        lambda a: a * 3,
        ALL,
        True,
    ),
    Mix(
        "equal-numpy",
        "an output of out_axes=None and a NumPy array",
        adding(equal, lambda *_: ONES),
        lambda a: a.sum(0) + 1,
    ),
    Mix(
        "equal-device-0",
        "an output of out_axes=None and an array on device 0",
        adding(equal, lambda _, d, a: on(d[0], ONES)),
        lambda a: a.sum(0) + 1,
        (0,),
        True,
    ),
    Mix(
        "equal-whole",
        "an output of out_axes=None and one of out_axes=0",
        adding(equal, whole),
        lambda a: a.sum(0) + a * 2,
    ),
    Mix(
        "equal-row",
        "an output of out_axes=None and a row",
        adding(equal, row(0)),
        lambda a: a.sum(0) + a[0] * 2,
    ),
    Mix(
        "update-device-3",
        "an output updated by an array on device 3",
        lambda i, d, a: (lambda x, y: lambda: x.at[0].set(y))(output(i, a), on(d[3], ONES)),
        lambda a: np.concatenate([ONES[None], a[1:] * 2]),
        (3,),
        True,
    ),
    Mix(
        "jit-alone",
        "an output under jit",
        lambda i, d, a: (lambda x, f: lambda: f(x))(output(i, a), jax.jit(lambda x: x + 1)),
        lambda a: a * 2 + 1,
    ),
    Mix(
        "jit-row-alone",
        "the fourth row under jit",
        lambda i, d, a: (lambda x, f: lambda: f(x[3]))(output(i, a), jax.jit(lambda x: x + 1)),
        lambda a: a[3] * 2 + 1,
    ),
    Mix(
        "joined-numpy",
        "an output and a NumPy array, joined",
        lambda i, d, a: (lambda x: lambda: jnp.concatenate([x, a]))(output(i, a)),
        lambda a: np.concatenate([a * 2, a]),
    ),
    Mix(
        "stacked-rows",
        "two rows, stacked",
        lambda i, d, a: (lambda x: lambda: jnp.stack([x[0], x[5]]))(output(i, a)),
        lambda a: a[[0, 5]] * 2,
    ),
    Mix(
        "put-on-device-5",
        "a row, put on device 5",
        lambda i, d, a: (lambda x: lambda: jax.device_put(x[1], d[5]))(output(i, a)),
        lambda a: a[1] * 2,
        (5,),
        True,
    ),
    Mix(
        "copied",
        "an output, copied",
        lambda i, d, a: (lambda x: lambda: x.copy())(output(i, a)),
        lambda a: a * 2,
        ALL,
        True,
    ),
)


@family(
    "silences.mixing.{mix}",
    mix=MIXES,
    claim="pmap-silence.mixing-with-other-arrays",
    title="Values and sharding of a combination: {mix.text}.",
    fact=lambda mix: f"silences.mixing.{mix.key}",
    needs=devices(COUNT),
    left_out="errors.indexing tests outputs in several processes",
    expect=lambda mix: everywhere(mix.as_legacy()),
)
def mixed(impl: Implementation, cluster: Cluster, mix: Mix) -> None:
    """An output with other arrays."""
    cluster.twice(mix.program(impl, cluster.devices, cluster.rows(WIDTH)))
