"""Weak types of rows, of constants in the body, and of unmapped Python numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.arrays import returns_weak
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import TWICE, in_steps, not_applicable
from conformance.spec.family import family, table
from conformance.spec.names import SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation


@dataclass(frozen=True, slots=True)
class Weak:
    """A map's body, made afresh, its arguments, its one result and whether that is weak."""

    key: str
    text: str
    body: Callable[[], Any]
    arguments: Callable[[Place], tuple[Any, ...]]
    model: Model
    weak: bool
    in_axes: Any = 0
    static: bool = False


def weak_ones() -> Any:
    """A weak float32 one for each of eight devices, on one of them."""
    return jax.vmap(lambda x: 1.0)(jax.numpy.arange(8))


def rows(place: Place) -> tuple[Any, ...]:
    """A row for each device."""
    return (place.rows(WIDTH),)


def each(value: Any, dtype: str) -> Model:
    """This value from each device."""

    @described("the same from each device")
    def model(place: Place) -> Any:
        return np.full(8, value, dtype)

    return model


@described("each row, doubled, in float16")
def scaled(place: Place) -> Any:
    return (place.rows(WIDTH) * 2).astype(np.float16)


def half_rows(place: Place) -> Any:
    """Rows of float16."""
    return place.rows(WIDTH).astype(np.float16)


def _constant(key: str, text: str, value: Any, dtype: str, weak: bool) -> Weak:
    return Weak(
        f"constant-{key}",
        f"{text}, returned by the body",
        lambda: lambda x: value,
        rows,
        each(value, dtype),
        weak,
    )


def _passed(key: str, text: str, value: Any, dtype: str, weak: bool) -> Weak:
    return Weak(
        f"passed-{key}",
        f"{text}, unmapped and returned",
        lambda: lambda x, y: y,
        lambda place: (place.rows(WIDTH), value),
        each(value, dtype),
        weak,
        in_axes=(0, None),
    )


def _times(key: str, text: str, value: Any, dtype: str) -> Weak:
    return Weak(
        f"times-{key}",
        f"{text}, unmapped, times float16",
        lambda: lambda x, y: x * y,
        lambda place: (half_rows(place), value),
        lambda place: (place.rows(WIDTH) * 2).astype(dtype),
        False,
        in_axes=(0, None),
    )


WEAK: Mapping[str, Weak] = table(
    Weak(
        "rows",
        "weakly typed rows, unchanged",
        lambda: lambda x: x,
        lambda place: (weak_ones(),),
        each(1, "float32"),
        True,
    ),
    Weak(
        "rows-strong",
        "strongly typed rows, unchanged",
        lambda: lambda x: x,
        lambda place: (np.ones(8, np.float32),),
        each(1, "float32"),
        False,
    ),
    Weak(
        "rows-plus-half",
        "weakly typed rows plus float16",
        lambda: lambda x, y: x + y,
        lambda place: (weak_ones(), np.ones(8, np.float16)),
        each(2, "float16"),
        False,
    ),
    Weak(
        "gathered",
        "weakly typed rows, gathered",
        lambda: lambda x: jax.lax.all_gather(x, "i"),
        lambda place: (weak_ones(),),
        lambda place: np.ones((8, 8), np.float32),
        True,
    ),
    Weak(
        "averaged",
        "a pmean of weakly typed rows",
        lambda: lambda x: jax.lax.pmean(x, "i"),
        lambda place: (weak_ones(),),
        each(1, "float32"),
        False,
    ),
    _constant("int", "a Python int", 2, "int32", True),
    _constant("float", "a Python float", 2.0, "float32", True),
    _constant("complex", "a Python complex number", 2j, "complex64", True),
    _constant("bool", "a Python bool", True, "bool", False),
    _constant("numpy", "a NumPy number", np.float32(2), "float32", False),
    Weak(
        "psum-of-one",
        "`psum(1)`",
        lambda: lambda x: jax.lax.psum(1, "i"),
        rows,
        each(8, "int32"),
        True,
    ),
    Weak(
        "axis-index",
        "`axis_index`",
        lambda: lambda x: jax.lax.axis_index("i"),
        rows,
        lambda place: np.arange(8, dtype=np.int32),
        False,
    ),
    _passed("int", "a Python int", 2, "int32", True),
    _passed("float", "a Python float", 2.0, "float32", True),
    _passed("complex", "a Python complex number", 2j, "complex64", True),
    _passed("bool", "a Python bool", True, "bool", False),
    _passed("numpy", "a NumPy number", np.float32(2), "float32", False),
    _times("int", "a Python int", 2, "float16"),
    _times("float", "a Python float", 2.0, "float16"),
    _times("numpy", "a NumPy float32", np.float32(2), "float32"),
    Weak(
        "times-weak-array",
        "a weakly typed jax.Array, unmapped, times float16",
        lambda: lambda x, y: x * y,
        lambda place: (half_rows(place), jax.numpy.asarray(2.0)),
        scaled,
        False,
        in_axes=(0, None),
    ),
    Weak(
        "psum-of-float",
        "a psum of an unmapped Python float",
        lambda: lambda x, y: jax.lax.psum(y, "i"),
        lambda place: (place.rows(WIDTH), 2.0),
        each(16, "float32"),
        False,
        in_axes=(0, None),
    ),
    Weak(
        "static",
        "a static Python float, returned",
        lambda: lambda x, y: y,
        lambda place: (place.rows(WIDTH), 2.0),
        each(2, "float32"),
        True,
        static=True,
    ),
)

NO_STATIC = "shard_map has no static arguments"


@family(
    "silences.weak.{case}",
    case=WEAK,
    claim="pmap-silence.weak-types",
    title="The result is weakly typed where legacy pmap's is: {case.text}.",
    fact="silences.weak.kept",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(8),
    expect=lambda case: (
        everywhere(in_steps(returns_weak(case.model, lambda _: [case.weak]), *TWICE))
        | ({SHARD_MAP: not_applicable(NO_STATIC)} if case.static else {})
    ),
)
def weak(impl: Implementation, cluster: Cluster, case: Weak) -> None:
    """Call twice a mapped function whose result may be weakly typed."""
    options = {"static_broadcasted_argnums": 1} if case.static else {}  # type: dict[str, Any]
    cluster.twice(impl.map(case.body(), in_axes=case.in_axes, **options), *case.arguments(cluster))
