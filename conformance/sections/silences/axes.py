"""Axes that are none: negative ones, None for every argument, beyond the rank, and no rows; and
`out_axes` in containers.
"""

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
    numbers,
    rank,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import Columns, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.expectation import in_steps, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP
from conformance.spec.releases import by_release
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_TWO, Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.axis-arguments"
NO_AXES = "shard_map has specs in place of axes"


@described("each row, doubled, put along the last axis")
def along_last(place: Place) -> Any:
    return place.rows(WIDTH).T * 2


@described("each row, doubled")
def along_first(place: Place) -> Any:
    return place.rows(WIDTH) * 2


@described("as many rows as columns")
def square(place: Place) -> Any:
    return numbers(8, 8)


@described("each column, doubled, as a row")
def last_mapped(place: Place) -> Any:
    return square(place).T * 2


@described("each row of the square, doubled")
def first_mapped(place: Place) -> Any:
    return square(place) * 2


def _axes(
    key: str,
    text: str,
    call: Callable[[Implementation, Cluster], Any],
    error: type[BaseException],
    message: str,
    phase: str | None,
    otherwise: Model | None = None,
) -> Refused:
    return Refused(key, text, CLAIM, call, error, message, phase, otherwise)


def _in(axis: int) -> Callable[[Implementation, Cluster], Any]:
    return lambda impl, place: impl.map(double(), in_axes=axis)(square(place))


def _out(axis: int) -> Callable[[Implementation, Cluster], Any]:
    return lambda impl, place: impl.map(double(), out_axes=axis)(place.rows(WIDTH))


# Legacy asserts, in its own lowering, that an axis is none from the end.
ASSERTED = "^\\({axis}, 2\\)$"

ALL_NONE = "at least one (non-None value in in_axes|argument with a mapped axis)"


def _none(key: str, text: str, **options: Any) -> Refused:
    return _axes(
        key,
        text,
        lambda impl, place: impl.map(
            lambda x: x * (1 + jax.lax.axis_index("i")), in_axes=None, **options
        )(numbers(WIDTH)),
        ValueError,
        ALL_NONE,
        "arguments",
        lambda place: np.outer(np.arange(1, 9, dtype=np.float32), numbers(WIDTH)),
    )


AXES: Mapping[str, Refused] = table(
    _axes(
        "in-last",
        "`in_axes=-1`",
        _in(-1),
        AssertionError,
        ASSERTED.format(axis=-1),
        "trace",
        last_mapped,
    ),
    _axes(
        "in-last-but-one",
        "`in_axes=-2` for a matrix",
        _in(-2),
        AssertionError,
        ASSERTED.format(axis=-2),
        "trace",
        first_mapped,
    ),
    _axes(
        "in-before-first",
        "`in_axes=-3` for a matrix",
        _in(-3),
        ValueError,
        rank(-3, 3, 2, "(8, 8)"),
        "arguments",
    ),
    _axes(
        "in-beyond",
        "`in_axes=2` for a matrix",
        _in(2),
        ValueError,
        rank(2, 3, 2, "(8, 8)"),
        "arguments",
    ),
    _axes(
        "out-last",
        "`out_axes=-1`",
        _out(-1),
        AssertionError,
        ASSERTED.format(axis=-1),
        "compile",
        along_last,
    ),
    _axes(
        "out-last-but-one",
        "`out_axes=-2` for a matrix",
        _out(-2),
        AssertionError,
        ASSERTED.format(axis=-2),
        "compile",
        along_first,
    ),
    _axes(
        "out-before-first",
        "`out_axes=-3` for a matrix",
        _out(-3),
        ValueError,
        "^axis -3 is out of bounds for array of dimension 2$",
        "trace",
    ),
    _axes(
        "out-beyond",
        "`out_axes=2` for a matrix",
        _out(2),
        ValueError,
        "^axis 2 is out of bounds for array of dimension 2$",
        "trace",
    ),
    _none("none", "`in_axes=None`"),
    _none("none-and-size", "`in_axes=None` and an `axis_size`", axis_size=8),
    _axes(
        "none-for-each",
        "`in_axes=None` for each argument",
        lambda impl, place: impl.map(lambda x, y: x + y, in_axes=(None, None))(
            place.rows(WIDTH), place.rows(WIDTH)
        ),
        ValueError,
        ALL_NONE,
        "arguments",
    ),
    _axes(
        "size-too-small",
        "an `axis_size` of half the number of rows",
        lambda impl, place: impl.map(double(), axis_size=4)(place.rows(WIDTH)),
        ValueError,
        r"^Specified axis_size 4 doesn't match received axis_size 8\.$",
        None,
        along_first,
    ),
    _axes(
        "size-too-large",
        "an `axis_size` of one more than the number of rows",
        lambda impl, place: impl.map(double(), axis_size=9)(place.rows(WIDTH)),
        ValueError,
        r"^Specified axis_size 9 doesn't match received axis_size 8\.$",
        None,
        along_first,
    ),
)


def _refused(case: Refused) -> Columns:
    """Expect what `as_legacy` does; where every axis is None, of each implementation its text."""
    columns = as_legacy(case, NO_AXES)
    if case.message != ALL_NONE:
        return columns

    def said(message: str) -> Expectation:
        return in_steps(
            raises(case.error, message, phase=case.phase, otherwise=case.otherwise), CALL
        )

    old = said("^pmap must have at least one non-None value in in_axes$")
    new = said(r"^pmap requires at least one argument with a mapped axis\.$")
    pmaps = {LEGACY_PMAP: old, NEW_PMAP: by_release("0.9.1", before=old, since=new)}
    return columns | pmaps


@family(
    "silences.axes.{case}",
    case=AXES,
    claim="{case.claim}",
    title="A mapped function with {case.text} is refused.",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(8),
    expect=_refused,
)
def refused_axes(impl: Implementation, cluster: Cluster, case: Refused) -> None:
    """A map over axes that are none."""
    cluster.step(CALL, case.call, impl, cluster)


@clause(
    "silences.axes.no-rows",
    claim="pmap-silence.fewer-rows-than-devices",
    left_out=ONE_PROCESS_ALONE,
    expect=of_pmaps(
        in_steps(
            # Legacy itself says it where devices= is given, and dies where not.
            raises(ValueError, "axis_size=0, num_local_devices=8", phase="lower"),
            CALL,
        ),
        "an array without rows has nothing to split: silences.empty.*",
    ),
)
def no_rows(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function over an array without rows is refused."""
    cluster.step(CALL, lambda: impl.map(double())(np.zeros((0, WIDTH), np.float32)))


@described("A dict of the matrix, doubled")
def columns_doubled(place: Place) -> Any:
    return {"a": square(place) * 2}


@clause(
    "silences.axes.taken-dicts",
    claim="pmap-silence.pytrees-and-keywords",
    needs=devices(8),
    left_out=ONE_PROCESS_ALONE,
    expect=of_pmaps(twice(returns(columns_doubled)), otherwise=NO_AXES),
)
def taken_dicts(impl: Implementation, cluster: Cluster) -> None:
    """`in_axes` and `out_axes` that are dicts, as are the argument and the result."""
    function = impl.map(lambda tree: {"a": tree["a"] * 2}, in_axes=({"a": 1},), out_axes={"a": 1})
    cluster.twice(function, {"a": square(cluster)})


@dataclass(frozen=True, slots=True)
class Containers:
    """A result in containers, which `body` makes of a row, and `out_axes` for it.

    `fixes` is the clause whose error these containers avoid.
    """

    key: str
    text: str
    out_axes: Any
    body: Callable[[Any], Any]
    fixes: str | None = None


OUT_CONTAINERS: Mapping[str, Containers] = table(
    Containers("list", "`out_axes=[0, 0]`", [0, 0], lambda x: [x * 2, x + 1]),
    Containers(
        "dict", '`out_axes={"a": 0, "b": 0}`', {"a": 0, "b": 0}, lambda x: {"a": x * 2, "b": x + 1}
    ),
    Containers(
        "dict-in-tuple", '`out_axes=({"a": 0}, 0)`', ({"a": 0}, 0), lambda x: ({"a": x * 2}, x + 1)
    ),
    Containers(
        "fix-tuple",
        "`out_axes=(0, 0)`",
        (0, 0),
        lambda x: (x * 2, x + 1),
        fixes="silences.out-axes.list",
    ),
    Containers(
        "fix-one-number",
        "`out_axes=0` for a dict",
        0,
        lambda x: {"a": x * 2, "b": x + 1},
        fixes="silences.out-axes.dict",
    ),
)


def contained(containers: Containers) -> Model:
    """Return the model of the result: what the body makes of all of a process's rows."""
    return described("the doubled rows, and the rows plus 1, in their containers")(
        lambda place: containers.body(place.rows(WIDTH))
    )


@family(
    "silences.out-axes.{containers}",
    containers=OUT_CONTAINERS,
    claim="pmap-silence.pytrees-and-keywords",
    title="A mapped function with {containers.text} returns its result in these containers.",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    expect=lambda containers: of_pmaps(twice(returns(contained(containers))), otherwise=NO_AXES),
)
def out_containers(impl: Implementation, cluster: Cluster, containers: Containers) -> None:
    """`out_axes` in the containers of the result, or one number for all of it."""
    cluster.twice(
        impl.map(containers.body, out_axes=containers.out_axes), impl.given(cluster.rows(WIDTH))
    )
