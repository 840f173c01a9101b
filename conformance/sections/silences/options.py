"""Options of the wrong type, and unhashable static arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CALL,
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    Refused,
    after_control,
    as_legacy,
    control,
    doubled,
)
from conformance.spec.clause import clause
from conformance.spec.columns import of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.expectation import every, in_steps, returns
from conformance.spec.family import family, table
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

UNHASHABLE = "pmap-silence.unhashable-static-argument"
TYPES = "pmap-silence.argument-types"
NO_SUCH_OPTIONS = "shard_map has none of these options, and jit's are another matter"

# --- static arguments that cannot be hashed -------------------------------------------------------


class Unhashable:
    """Equal to all, and without a hash."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _static(key: str, text: str, kind: str, argument: Callable[[], Any]) -> Refused:
    return Refused(
        key,
        text,
        UNHASHABLE,
        lambda impl, place: impl.map(lambda x, n: x * 2, static_broadcasted_argnums=1)(
            place.rows(WIDTH), argument()
        ),
        ValueError,
        f"^Non-hashable static arguments are not supported.* of type <class '{kind}'>",
        None,
        doubled,
    )


STATIC: Mapping[str, Refused] = table(
    _static("list", "a list", "list", lambda: [1, 2]),
    _static("dict", "a dict", "dict", lambda: {"a": 1}),
    _static("numpy", "a NumPy array", "numpy.ndarray", lambda: np.ones(2)),
    _static("jax", "a jax.Array", r"jaxlib\.\S*ArrayImpl", lambda: jax.numpy.ones(2)),
    _static("tuple-of-lists", "a tuple that holds a list", "tuple", lambda: ([1], 2)),
    _static("own-class", "an object without a hash", r"\S*\.Unhashable", Unhashable),
    Refused(
        "second-of-two",
        "a list, as the second of two static arguments",
        UNHASHABLE,
        lambda impl, place: impl.map(lambda x, n, m: x * 2, static_broadcasted_argnums=(1, 2))(
            place.rows(WIDTH), 1, [2]
        ),
        ValueError,
        "^Non-hashable static arguments are not supported.* of type <class 'list'>",
        None,
        doubled,
    ),
)


@family(
    "silences.static.{case}",
    case=STATIC,
    claim="{case.claim}",
    title="An unhashable static argument is refused by an error that names its type: {case.text}.",
    fact="silences.static.unhashable",
    left_out=ONE_PROCESS_ALONE,
    expect=lambda case: as_legacy(case, NO_SUCH_OPTIONS),
)
def unhashable(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A static argument that cannot be hashed."""
    cluster.step(CALL, case.call, impl, cluster)


# --- options of another type ----------------------------------------------------------------------


def _option(
    key: str,
    text: str,
    options: Mapping[str, Any],
    message: str,
    error: type[BaseException] = TypeError,
    phase: str | None = "construct",
    body: Callable[[], Any] = double,
    otherwise: Model | None = doubled,
) -> Refused:
    return Refused(
        key,
        text,
        TYPES,
        lambda impl, place: impl.map(body(), **options)(place.rows(WIDTH)),
        error,
        message,
        phase,
        otherwise,
    )


def axes(which: str, given: str) -> str:
    """Legacy's text: what axes may be, and what was given."""
    return (
        rf"^pmap {which} must be an int, None, or \(nested\) container with those types as leaves, "
        rf"but got {given}\.$"
    )


def two() -> Callable[[Any], Any]:
    """The row, twice."""
    return lambda x: (x, x)


def generator() -> Callable[[Any], Iterator[Any]]:
    """A generator function."""

    def rows(x: Any) -> Iterator[Any]:
        yield x

    return rows


OPTIONS: Mapping[str, Refused] = table(
    _option("in-axes-float", "`in_axes=0.0`", {"in_axes": 0.0}, axes("in_axes", r"0\.0")),
    _option("in-axes-text", "`in_axes='i'`", {"in_axes": "i"}, axes("in_axes", "i")),
    _option("in-axes-bool", "`in_axes=False`", {"in_axes": False}, axes("in_axes", "False")),
    _option("in-axes-numpy", "a NumPy `in_axes`", {"in_axes": np.int64(0)}, axes("in_axes", "0")),
    _option("out-axes-float", "`out_axes=0.0`", {"out_axes": 0.0}, axes("out_axes", r"0\.0")),
    _option("out-axes-text", "`out_axes='i'`", {"out_axes": "i"}, axes("out_axes", "i")),
    _option(
        "in-axes-list",
        "a list of `in_axes`",
        {"in_axes": [0]},
        r"different types at key path\s+pmap in_axes\[0\]\s.*<class 'list'>.*<class 'tuple'>",
        ValueError,
        None,
    ),
    Refused(
        "in-axes-bare-tree",
        "`in_axes` that is the pytree of the only argument, without a tuple around it",
        TYPES,
        lambda impl, place: impl.map(
            lambda tree: tree["a"] * 2,
            in_axes={"a": 0},  # type: ignore[arg-type]  # what is refused
        )({"a": place.rows(WIDTH)}),
        ValueError,
        r"different types at key path\s+pmap in_axes\[0\]\s.*<class 'dict'>.*<class 'tuple'>",
        None,
        doubled,
    ),
    _option(
        "out-axes-shorter",
        "`out_axes` of one entry for two results",
        {"out_axes": (0,)},
        r"different lengths of tuple at key path\s+pmap out_axes\s.*of length 1, .*of length 2.*"
        "Ensure that the `out_axes` argument to `pmap` is a pytree prefix",
        ValueError,
        "trace",
        two,
        None,
    ),
    _option(
        "static-text",
        "a string as `static_broadcasted_argnums`",
        {"static_broadcasted_argnums": "x"},
        "^'str' object cannot be interpreted as an integer$",
    ),
    _option(
        "donate-text",
        "a string as `donate_argnums`",
        {"donate_argnums": "x"},
        "^'str' object cannot be interpreted as an integer$",
    ),
    _option(
        "static-and-donated",
        "an argument both static and donated",
        {"static_broadcasted_argnums": 1, "donate_argnums": 1},
        r"^`static_argnums` \[1\] and `donate_argnums` \[1\] cannot intersect\.$",
        ValueError,
    ),
    _option(
        "backend-unknown",
        "an unknown `backend`",
        {"backend": "nosuch"},
        r"^Unknown backend nosuch\. Available backends are \['(cpu|cuda|tpu)'\]$",
        RuntimeError,
        None,
    ),
    _option(
        "unknown",
        "an option that does not exist",
        {"nosuch": 1},
        r"got an unexpected keyword argument 'nosuch'$",
        TypeError,
        None,
    ),
    _option(
        "devices-numbers",
        "numbers as `devices=`",
        {"devices": list(range(8))},
        "^'int' object has no attribute '",
        AttributeError,
        None,
    ),
    _option(
        "axis-name-unhashable",
        "a list as axis name",
        {"axis_name": ["i"]},
        "^unhashable type: 'list'$",
        TypeError,
        None,
    ),
    _option(
        "not-callable",
        "a number instead of a function",
        {},
        "^Expected a callable value, got 3$",
        body=lambda: 3,
        otherwise=None,
    ),
    _option(
        "generator",
        "a generator function",
        {},
        "^Expected a function, got a generator function: <function ",
        body=generator,
        otherwise=None,
    ),
    _option(
        "result-text",
        "a function that returns a string",
        {},
        "of type '?<class 'str'>'? is not a valid JAX type$",
        TypeError,
        "trace",
        lambda: lambda x: "s",
        None,
    ),
)


@family(
    "silences.option.{case}",
    case=OPTIONS,
    claim="{case.claim}",
    title="A mapped function with {case.text} is refused by an error that says why.",
    left_out=ONE_PROCESS_ALONE,
    expect=lambda case: after_control(as_legacy(case, NO_SUCH_OPTIONS)),
)
def option(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """Map a function with an option of the wrong type; some are refused before there is a mapped
    function.
    """
    control(impl, cluster)
    cluster.step(CALL, case.call, impl, cluster)


@clause(
    "silences.option.global-arg-shapes",
    claim=TYPES,
    left_out=ONE_PROCESS_ALONE,
    expect=of_pmaps(every(CONTROLLED, in_steps(returns(doubled), CALL)), NO_SUCH_OPTIONS),
)
def global_arg_shapes(impl: Implementation, cluster: Cluster) -> None:
    """A pmap with `global_arg_shapes=None`, its default, returns what it does without it."""
    control(impl, cluster)
    cluster.step(CALL, lambda: impl.map(double(), global_arg_shapes=None)(cluster.rows(WIDTH)))
