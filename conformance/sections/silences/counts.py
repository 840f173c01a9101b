"""The number of arguments of a call: none, too many, or fewer than its options require."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from conformance.sections.silences.answers import (
    CALL,
    ONE_PROCESS_ALONE,
    WIDTH,
    Refused,
    as_legacy,
    doubled,
)
from conformance.spec.comparing import Model
from conformance.spec.family import family, table
from conformance.worker.bodies import add, double
from conformance.worker.protocols import Cluster, Implementation

COUNT = "pmap-silence.argument-count"
NO_SUCH_OPTIONS = "shard_map has none of these options, and jit's are another matter"


def _count(
    key: str,
    text: str,
    call: Callable[[Implementation, Cluster], Any],
    message: str,
    phase: str | None = "arguments",
    error: type[BaseException] = ValueError,
    otherwise: Model | None = None,
) -> Refused:
    return Refused(key, text, COUNT, call, error, message, phase, otherwise)


NOTHING_MAPPED = "at least one argument (containing an array|with a mapped axis)"


def not_positional(which: int) -> str:
    """Legacy's text: which arguments are static, and how many were passed by position."""
    return (
        rf"^pmapped function has static_broadcasted_argnums=\({which},\) but was called with only "
        r"1 positional argument\. All static broadcasted arguments must be passed positionally\.$"
    )


def prefix(length: int, of: int) -> str:
    """Legacy's text: both lengths, and what is a prefix of what."""
    return (
        r"^pytree structure error: different lengths of tuple at key path\s+pmap in_axes\[0\]\s.*"
        rf"of length {length}, but .* of length {of}\..*`in_axes` must be a tree prefix"
    )


COUNTS: Mapping[str, Refused] = table(
    _count(
        "none",
        "without arguments, of a function that takes one,",
        lambda impl, place: impl.map(double())(),
        NOTHING_MAPPED,
    ),
    _count(
        "none-wanted",
        "without arguments, of a function that takes none,",
        lambda impl, place: impl.map(lambda: 1.0)(),
        NOTHING_MAPPED,
    ),
    _count(
        "all-static",
        "with static arguments only",
        lambda impl, place: impl.map(
            lambda n: jax.numpy.ones(2) * n, static_broadcasted_argnums=0, axis_size=8
        )(3),
        NOTHING_MAPPED,
    ),
    _count(
        "empty-tree",
        "with only an argument without leaves",
        lambda impl, place: impl.map(lambda t: t)(()),
        NOTHING_MAPPED,
    ),
    _count(
        "one-too-many",
        "with one argument more than the function takes",
        lambda impl, place: impl.map(double())(place.rows(WIDTH), place.rows(WIDTH)),
        "takes 1 positional argument but 2 were given$",
        "trace",
        TypeError,
    ),
    _count(
        "one-too-few",
        "with one argument less than the function takes",
        lambda impl, place: impl.map(add())(place.rows(WIDTH)),
        "missing 1 required positional argument: 'y'$",
        "trace",
        TypeError,
    ),
    _count(
        "static-missing",
        "without its static argument",
        lambda impl, place: impl.map(lambda x, n: x * n, static_broadcasted_argnums=1)(
            place.rows(WIDTH)
        ),
        not_positional(1),
        None,
    ),
    _count(
        "static-default",
        "without its static argument that has a default",
        lambda impl, place: impl.map(lambda x, n=2: x * n, static_broadcasted_argnums=1)(
            place.rows(WIDTH)
        ),
        not_positional(1),
        None,
        otherwise=doubled,
    ),
    _count(
        "static-by-keyword",
        "with its static argument by keyword",
        lambda impl, place: impl.map(lambda x, n: x * n, static_broadcasted_argnums=1)(
            place.rows(WIDTH), n=2
        ),
        not_positional(1),
        None,
        otherwise=doubled,
    ),
    _count(
        "static-beyond",
        "with a static argument that the function does not have",
        lambda impl, place: impl.map(double(), static_broadcasted_argnums=5)(place.rows(WIDTH)),
        not_positional(5),
        None,
        otherwise=doubled,
    ),
    _count(
        "static-from-the-end",
        "with its static argument counted from the end",
        lambda impl, place: impl.map(lambda x, n: x * n, static_broadcasted_argnums=-1)(
            place.rows(WIDTH), 2
        ),
        "axis 0, which implies that its rank should be at least 1, but is only 0",
        otherwise=doubled,
    ),
    _count(
        "in-axes-longer",
        "with `in_axes` of three entries for two arguments",
        lambda impl, place: impl.map(add(), in_axes=(0, 0, 0))(
            place.rows(WIDTH), place.rows(WIDTH)
        ),
        prefix(3, 2),
        None,
        otherwise=doubled,
    ),
    _count(
        "in-axes-shorter",
        "with `in_axes` of one entry for two arguments",
        lambda impl, place: impl.map(add(), in_axes=(0,))(place.rows(WIDTH), place.rows(WIDTH)),
        prefix(1, 2),
        None,
        otherwise=doubled,
    ),
)


@family(
    "silences.count.{case}",
    case=COUNTS,
    claim="{case.claim}",
    title="A mapped function called {case.text} is refused by an error that says why.",
    left_out=ONE_PROCESS_ALONE,
    expect=lambda case: as_legacy(case, NO_SUCH_OPTIONS),
)
def counted(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """Call a mapped function with another number of arguments than its options require."""
    cluster.step(CALL, case.call, impl, cluster)
