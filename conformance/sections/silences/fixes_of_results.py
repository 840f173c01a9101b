"""Fixes that known issues name, for the attributes, results and errors of a mapped function."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.sections.silences.fixing import DEFAULTS, WIDTH
from conformance.spec.columns import everywhere, of_jax, of_pmaps
from conformance.spec.expectation import TWICE, along, every, noted, raises, returns, sharded, twice
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation


@DEFAULTS.clause(
    "silences.fix.wrapper-attributes",
    claim="pmap-silence.wrapper-attributes",
    title="functools.update_wrapper gives a pmap the name, text and signature of its function.",
    fixes="silences.wrapper.custom",
    expect=of_pmaps(
        every(
            twice(returns(doubled(WIDTH))),
            noted(
                "attributes",
                "named as its function",
                lambda _, seen: seen == ["rows_doubled", "Double rows.", ["rows"]],
            ),
        ),
        "the page is about pmap",
    ),
)
def wrapper_attributes(impl: Implementation, cluster: Cluster) -> None:
    """A pmapped function with the attributes of the function that it maps."""

    def rows_doubled(rows: Any) -> Any:
        """Double rows."""
        return rows * 2

    function = impl.map(rows_doubled)
    named: Any = functools.update_wrapper(function.function, rows_doubled)
    for name in TWICE:
        cluster.step(name, function, cluster.rows(WIDTH))
        parameters = list(inspect.signature(named).parameters)
        cluster.note("attributes", [named.__name__, named.__doc__, parameters])


@DEFAULTS.clause(
    "silences.fix.body-named-in-errors",
    claim="pmap-silence.debugging",
    title="The error of a map of jit(body) names the body that branches on a value.",
    fixes="silences.debugging.branch-on-a-value",
    expect=everywhere(
        twice(
            raises(
                jax.errors.TracerBoolConversionError,
                r"^Attempted boolean conversion of traced array with shape bool\[\].* while "
                r"tracing the function branching at \S*fixes_of_results\.py:\d+ for jit\. ",
                phase="trace",
            )
        )
    ),
)
def body_named(impl: Implementation, cluster: Cluster) -> None:
    """A Python `if` on a mapped value, under jit in the body."""

    def branching(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    cluster.twice(impl.map(jax.jit(branching)), cluster.rows(WIDTH))


@DEFAULTS.clause(
    "silences.fix.sizes-by-vmap",
    claim="pmap-silence.mismatched-sizes",
    title="eval_shape of vmap of the same function names the sizes of mapped axes that differ.",
    fixes="silences.sizes.different.second-shorter",
    expect=of_jax(
        raises(
            ValueError,
            r"^vmap got inconsistent sizes for array axes to be mapped:.* 8.* 4",
            phase="arguments",
        )
    ),
)
def sizes_by_vmap(impl: Implementation, cluster: Cluster) -> None:
    """Two arguments of which one has half as many rows."""
    rows = cluster.rows(WIDTH)
    shape = jax.eval_shape
    cluster.step("sizes", shape, jax.vmap(lambda x, y: x + y, axis_name="i"), rows, rows[:4])


@DEFAULTS.clause(
    "silences.fix.deleted-by-hand",
    claim="migrate-pmap.donation-supported",
    title="`old.delete()` after a call frees a donated argument, whether or not the call used it.",
    expect=everywhere(
        twice(
            every(
                returns(doubled(WIDTH)),
                noted("deleted", "is deleted", lambda _, seen: seen is True),
            )
        )
    ),
)
def deleted_by_hand(impl: Implementation, cluster: Cluster) -> None:
    """A map that donates an argument of which the body uses nothing."""
    function = impl.map(lambda x, old: x * 2, donate_argnums=1)
    for name in TWICE:
        old = impl.map(double())(cluster.rows(WIDTH))
        cluster.step(name, function, cluster.rows(WIDTH), old)
        old.delete()
        cluster.note("deleted", old.is_deleted())


@DEFAULTS.clause(
    "silences.fix.empty-output-put",
    claim="pmap-silence.zero-size-arrays",
    title="device_put splits an output without elements over the devices.",
    expect=everywhere(twice(sharded("is split over the devices", along("i")))),
)
def empty_output_put(impl: Implementation, cluster: Cluster) -> None:
    """An output without elements, put on the map's sharding of rows."""
    function, sharding = impl.map(lambda x: x[:0]), impl.sharding()
    cluster.twice(lambda x: jax.device_put(function(x), sharding), cluster.rows(WIDTH))


@DEFAULTS.clause(
    "silences.fix.one-device-out-shardings",
    claim="pmap-silence.maps-over-one-device",
    title="out_shardings of jit give the output of a map over one device a mesh.",
    expect=everywhere(twice(sharded("is a NamedSharding of P('i')", along("i")))),
)
def one_device_out_shardings(impl: Implementation, cluster: Cluster) -> None:
    """A map over one device under jit, of an array that is committed to it."""
    device = cluster.devices[0]
    sharding = NamedSharding(Mesh(np.array([device]), ("i",)), P("i"))
    function = impl.map(double(), devices=[device])
    row = jax.device_put(cluster.rows(WIDTH)[:1], device)
    cluster.twice(jax.jit(lambda x: function(x), out_shardings=sharding), row)


@DEFAULTS.clause(
    "silences.fix.stage-of-jit",
    claim="pmap-silence.stage-lower-and-compile",
    title="The compiled stage of a jit of a map takes and returns a dict.",
    expect=everywhere(
        twice(returns(lambda place: {"a": place.rows(WIDTH) * 2}, text="the rows, doubled"))
    ),
)
def stage_of_jit(impl: Implementation, cluster: Cluster) -> None:
    """A map of a dict, lowered under jit and compiled."""
    function = impl.map(lambda tree: {"a": tree["a"] * 2})
    rows = {"a": cluster.rows(WIDTH)}
    cluster.twice(jax.jit(lambda tree: function(tree)).lower(rows).compile(), rows)
