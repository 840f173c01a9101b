"""Arguments that are no arrays: texts, objects, sets, functions, arrays of foreign types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CALL,
    ONE_PROCESS_ALONE,
    WIDTH,
    Refused,
    as_legacy,
    doubled,
)
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import TWICE, in_steps, returns
from conformance.spec.family import family, table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.argument-types"
IN_SHARD_MAP = "shard_map's arguments are jit's, which refuses them in its own words"

# A mapped one fails first, because it has no axis.
NO_RANK = r"along axis 0, which implies that its rank should be at least 1, but is only 0"


def invalid(kind: str) -> str:
    """Legacy's text: the value and its type."""
    return rf"^Argument .* of type <class '{kind}'> is not a valid JAX type\.$"


def _wrong(
    key: str,
    text: str,
    argument: Callable[[], Any],
    message: str = NO_RANK,
    error: type[BaseException] = ValueError,
    in_axes: int | None = 0,
) -> Refused:
    def call(impl: Implementation, place: Cluster) -> Any:
        function = impl.map(lambda x, y: x * 2, in_axes=(0, in_axes))
        return function(place.rows(WIDTH), argument())

    phase = "arguments" if message == NO_RANK else None
    return Refused(key, text, CLAIM, call, error, message, phase, doubled)


ARGUMENTS: Mapping[str, Refused] = table(
    _wrong("text", "a text", lambda: "hello"),
    _wrong("bytes", "bytes", lambda: b"hello"),
    _wrong("object", "an object", object),
    _wrong("set", "a set", lambda: {1, 2}),
    _wrong("function", "a function", lambda: len),
    _wrong(
        "text-unmapped",
        "an unmapped string",
        lambda: "hello",
        invalid("str"),
        TypeError,
        None,
    ),
    _wrong(
        "objects",
        "an array of objects",
        lambda: np.array([object()] * jax.local_device_count()),
        invalid("numpy.ndarray"),
        TypeError,
    ),
    _wrong(
        "texts",
        "an array of strings",
        lambda: np.array(["a"] * jax.local_device_count()),
        invalid("numpy.ndarray"),
        TypeError,
    ),
    _wrong(
        "dates",
        "a datetime64 array",
        lambda: np.array(["2020-01-01"] * jax.local_device_count(), "datetime64[D]"),
        invalid("numpy.ndarray"),
        TypeError,
    ),
    _wrong(
        "records",
        "a structured array",
        lambda: np.zeros(jax.local_device_count(), [("a", "f4")]),
        invalid("numpy.ndarray"),
        TypeError,
    ),
    _wrong(
        "masked",
        "a masked array",
        lambda: np.ma.masked_array(np.ones(8), np.ones(8) > 0),
        r"numpy masked arrays are not supported .*Use arr\.filled\(\)",
    ),
)


@family(
    "silences.argument.{case}",
    case=ARGUMENTS,
    claim="{case.claim}",
    title="A mapped function refuses {case.text} as an argument.",
    left_out=ONE_PROCESS_ALONE,
    expect=lambda case: as_legacy(case, IN_SHARD_MAP),
)
def no_array(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A call with an argument that is no array, beside one that is."""
    cluster.step(CALL, case.call, impl, cluster)


@dataclass(frozen=True, slots=True)
class Taken:
    """An argument that is not an array and is accepted, and the result."""

    key: str
    text: str
    body: Callable[[], Any]
    arguments: Callable[[Place], tuple[Any, ...]]
    model: Model = doubled


TAKEN: Mapping[str, Taken] = table(
    Taken(
        "none",
        "None, a pytree without leaves",
        lambda: lambda x, y: x * 2 if y is None else x,
        lambda place: (place.rows(WIDTH), None),
    ),
    Taken(
        "empty-dict",
        "an empty dict, and returns it",
        lambda: lambda x, t: (x * 2, t),
        lambda place: (place.rows(WIDTH), {}),
        lambda place: (place.rows(WIDTH) * 2, {}),
    ),
    Taken(
        "list",
        "a list with one array",
        lambda: lambda x: x[0] * 2,
        lambda place: ([place.rows(WIDTH)],),
    ),
    Taken(
        "registered",
        "an instance of a registered pytree class",
        lambda: lambda t: t.func(t.args[0]),
        lambda place: (jax.tree_util.Partial(lambda x: x * 2, place.rows(WIDTH)),),
    ),
    Taken(
        "default",
        "a call without an argument that has a default",
        lambda: lambda x, y=2.0: x * y,
        lambda place: (place.rows(WIDTH),),
    ),
)


@family(
    "silences.argument.taken-{case}",
    case=TAKEN,
    claim=CLAIM,
    title="A mapped function accepts {case.text}.",
    left_out=ONE_PROCESS_ALONE,
    expect=lambda case: everywhere(in_steps(returns(case.model), *TWICE)),
)
def taken(impl: Implementation, cluster: Cluster, case: Taken) -> None:
    """Two calls with an argument that is no array."""
    cluster.twice(impl.map(case.body()), *case.arguments(cluster))
