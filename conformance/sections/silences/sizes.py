"""Sizes that do not fit: arguments among each other, scalars, rows and the devices of `devices=`.

Legacy compares before it traces, and names each argument with its axis and its size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CALL,
    ONE_PROCESS_ALONE,
    WIDTH,
    Refused,
    after_control,
    as_legacy,
    control,
    numbers,
    rank,
)
from conformance.spec.clause import devices
from conformance.spec.comparing import Model
from conformance.spec.expectation import raises
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import add, double
from conformance.worker.protocols import Cluster, Implementation

MISMATCHED = "pmap-silence.mismatched-sizes"
SCALAR = "pmap-silence.scalar-argument"
ROWS = "pmap-silence.devices-and-rows"

NO_LISTS = "shard_map has a mesh in place of devices=, and splits rows into blocks"
MAPS_NO_SCALAR = "shard_map maps a scalar by P() alone: to say P('i') is another mistake"

# --- arguments of different sizes -----------------------------------------------------------------


def mismatch(*axes: str) -> str:
    """Legacy's text: each argument's axis, size and type."""
    return "^pmap got inconsistent sizes for array axes to be mapped:" + "".join(
        rf".*{re.escape(one)}" for one in axes
    )


def undivided(where: str, size: int, axis: int = 0, of: int = 8) -> Any:
    """shard_map's text: which argument does not divide, its axis, its size and the mesh's."""
    return raises(
        ValueError,
        "argument arrays with axis sizes that are not evenly divisible by the corresponding mesh "
        rf"axis sizes:.*{re.escape(where)}.*maps array axis {axis} \(of size {size}\) to mesh axis "
        rf"'i' \(of size {of}\)",
        phase="trace",
    )


def _differ(
    key: str,
    text: str,
    call: Callable[[Implementation, Cluster], Any],
    *axes: str,
    shard_map: Any = None,
) -> Refused:
    return Refused(
        key,
        text,
        MISMATCHED,
        call,
        ValueError,
        mismatch(*axes),
        "arguments",
        shard_map=shard_map,
    )


def x_with(x: int, y: int) -> str:
    """Return legacy pmap's message about two arguments with these numbers of rows."""
    return (
        f"one axis had size {x}: axis 0 of argument x of type float32[{x},3];\n"
        f"  * one axis had size {y}: axis 0 of argument y of type float32[{y},3]"
    )


DIFFERENT: Mapping[str, Refused] = table(
    _differ(
        "second-shorter",
        "whose second argument has half as many rows as the first",
        lambda impl, place: impl.map(add())(place.rows(WIDTH), place.rows(WIDTH)[:4]),
        x_with(8, 4),
        shard_map=undivided("of shape float32[4,3]", 4),
    ),
    _differ(
        "first-shorter",
        "whose first argument has half as many rows as the second",
        lambda impl, place: impl.map(add())(place.rows(WIDTH)[:4], place.rows(WIDTH)),
        x_with(4, 8),
        shard_map=undivided("of shape float32[4,3]", 4),
    ),
    _differ(
        "one-of-three",
        "with another number of rows in one of three arguments",
        lambda impl, place: impl.map(lambda x, y, z: x + y + z)(
            place.rows(WIDTH), place.rows(WIDTH)[:4], place.rows(WIDTH)
        ),
        "most axes (2 of them) had size 8, e.g. axis 0 of argument x of type float32[8,3];",
        "one axis had size 4: axis 0 of argument y of type float32[4,3]",
        shard_map=undivided("of shape float32[4,3]", 4),
    ),
    _differ(
        "leaf",
        "with another number of rows in one of an argument's two leaves",
        lambda impl, place: impl.map(lambda t: t["a"] + t["b"])(
            {"a": place.rows(WIDTH), "b": place.rows(WIDTH)[:4]}
        ),
        "axis 0 of argument t['a'] of type float32[8,3]",
        "axis 0 of argument t['b'] of type float32[4,3]",
        shard_map=undivided("of shape float32[4,3]", 4),
    ),
    _differ(
        "keyword",
        "whose keyword argument has half as many rows",
        lambda impl, place: impl.map(lambda x, y: x + y)(
            place.rows(WIDTH), y=place.rows(WIDTH)[:4]
        ),
        "axis 0 of argument x of type float32[8,3]",
        "one axis had size 4: axis 0 of kwargs['y'] of type float32[4,3]",
    ),
    _differ(
        "other-axis",
        "whose second argument is mapped over an axis of another size",
        lambda impl, place: impl.map(add(), in_axes=(0, 1))(place.rows(WIDTH), place.rows(WIDTH)),
        "one axis had size 8: axis 0 of argument x of type float32[8,3]",
        "one axis had size 3: axis 1 of argument y of type float32[8,3]",
        shard_map=undivided("of shape float32[8,3]", 3, axis=1),
    ),
)


@family(
    "silences.sizes.different.{case}",
    case=DIFFERENT,
    claim="{case.claim}",
    title="A mapped function {case.text} is refused by an error that names both sizes.",
    fact="silences.sizes.different",
    left_out="the result does not depend on the number of processes",
    needs=devices(8),
    expect=lambda case: as_legacy(case, "shard_map takes no keyword: errors.arguments.keyword"),
)
def different(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A call whose arguments' mapped axes differ in size."""
    cluster.step(CALL, case.call, impl, cluster)


# --- scalars --------------------------------------------------------------------------------------


def _scalar(
    key: str,
    text: str,
    call: Callable[[Implementation, Cluster], Any],
    message: str = rank(0, 1, 0, "()"),
) -> Refused:
    return Refused(key, text, SCALAR, call, ValueError, message, "arguments")


SCALARS: Mapping[str, Refused] = table(
    _scalar("python", "a Python number", lambda impl, place: impl.map(double())(3.0)),
    _scalar("numpy", "a NumPy number", lambda impl, place: impl.map(double())(np.float32(3))),
    _scalar(
        "jax", "a jax.Array of rank 0", lambda impl, place: impl.map(double())(jax.numpy.float32(3))
    ),
    _scalar(
        "second",
        "a Python number, beside an argument with rows",
        lambda impl, place: impl.map(add())(place.rows(WIDTH), 3.0),
    ),
    _scalar(
        "keyword",
        "a Python number by keyword",
        lambda impl, place: impl.map(lambda x, y: x + y)(place.rows(WIDTH), y=3.0),
    ),
    _scalar(
        "leaf",
        "a Python number as one leaf of a pytree",
        lambda impl, place: impl.map(lambda t: t["a"] + t["b"])({"a": place.rows(WIDTH), "b": 2.0}),
    ),
    _scalar(
        "list-of-numbers",
        "a list of Python numbers, which is a pytree of scalars",
        lambda impl, place: impl.map(lambda x: x)(list(range(8))),
    ),
    _scalar(
        "vector-by-columns",
        "axis 1 of a vector",
        lambda impl, place: impl.map(double(), in_axes=1)(place.rows()),
        rank(1, 2, 1, "(8,)").replace("8", "[1248]"),  # one row per device
    ),
)


@family(
    "silences.sizes.scalar.{case}",
    case=SCALARS,
    claim="{case.claim}",
    title="A mapped function over {case.text} is refused by an error that names the rank it needs.",
    fact="silences.sizes.scalar",
    left_out="the result does not depend on the number of processes",
    expect=lambda case: as_legacy(case, MAPS_NO_SCALAR),
)
def scalar(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A call that maps over what has no such axis."""
    cluster.step(CALL, case.call, impl, cluster)


# --- rows and the devices of devices= -------------------------------------------------------------


def rows_doubled(count: int) -> Model:
    """Return the model of so many rows, doubled."""

    @described("each row, doubled")
    def model(place: Place) -> Any:
        return numbers(count, WIDTH) * 2

    return model


def _devices(
    key: str, text: str, rows: int, devices: Callable[[Cluster], Any], message: str
) -> Refused:
    return Refused(
        key,
        text,
        ROWS,
        lambda impl, place: impl.map(double(), devices=devices(place))(numbers(rows, WIDTH)),
        ValueError,
        message,
        "compile",
        otherwise=rows_doubled(rows),
    )


def both(rows: int, devices: int) -> str:
    """Legacy's text: the number of rows and that of the devices given."""
    return (
        "^Leading axis size of input to pmapped function must equal the number of local devices "
        rf"passed to pmap\. Got axis_size={rows}, num_local_devices={devices}\.\s"
    )


EMPTY = "^'devices' argument to pmap must be non-empty, or None\\.$"

LISTS: Mapping[str, Refused] = table(
    _devices("one-row", "one row", 1, lambda place: place.local_devices[:4], both(1, 4)),
    _devices("fewer-rows", "two rows", 2, lambda place: place.local_devices[:4], both(2, 4)),
    _devices(
        "fewer-rows-all-devices", "half as many", 4, lambda place: place.local_devices, both(4, 8)
    ),
    _devices(
        "fewer-rows-last-devices", "two rows", 2, lambda place: place.local_devices[4:], both(2, 4)
    ),
    _devices("one-more", "five rows", 5, lambda place: place.local_devices[:4], both(5, 4)),
    _devices("twice-as-many", "eight rows", 8, lambda place: place.local_devices[:4], both(8, 4)),
    _devices("no-rows", "no row", 0, lambda place: place.local_devices[:4], both(0, 4)),
)


@family(
    "silences.sizes.devices.{case}",
    case=LISTS,
    claim="{case.claim}",
    title=(
        "With `devices=`, a mapped function with {case.text} is refused by an error that "
        "names both numbers."
    ),
    fact="silences.sizes.devices",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(8),
    expect=lambda case: as_legacy(case, NO_LISTS),
)
def devices_named(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A call with rows that are not one per device named."""
    cluster.step(CALL, case.call, impl, cluster)


NO_DEVICES: Mapping[str, Refused] = table(
    Refused(
        "empty",
        "an empty list",
        ROWS,
        lambda impl, place: impl.map(double(), devices=[])(place.rows(WIDTH)),
        ValueError,
        EMPTY,
        None,
    ),
    Refused(
        "one-device-twice",
        "one device listed eight times",
        ROWS,
        lambda impl, place: impl.map(double(), devices=place.local_devices[:1] * 8)(
            place.rows(WIDTH)
        ),
        ValueError,
        r"^safe_zip\(\) argument",
        "arguments",
        otherwise=rows_doubled(8),
    ),
)


@family(
    "silences.sizes.devices.{case}",
    case=NO_DEVICES,
    claim="{case.claim}",
    title="A mapped function with {case.text} as `devices=` is refused.",
    fact="silences.sizes.devices",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(2),
    expect=lambda case: after_control(as_legacy(case, NO_LISTS)),
)
def no_devices(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """Map a function over an invalid list of devices."""
    control(impl, cluster)
    cluster.step(CALL, case.call, impl, cluster)
