"""What known issues say to write instead, where no other clause shows that it works."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.columns import (
    Columns,
    everywhere,
    of_jax,
    of_new_pmap,
    of_pmaps,
    of_shard_map,
)
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import (
    TWICE,
    along,
    every,
    noted,
    raises,
    returns,
    sharded,
    steps,
    twice,
)
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.worker.bodies import double, doubled, psum
from conformance.worker.protocols import Cluster, Implementation, Mapped

lax = jax.lax
Rows = NDArray[Any]

COUNT, WIDTH = 8, 3  # devices, and numbers of a row

DEFAULTS = Defaults(
    needs=devices(COUNT), left_out="the fix is for programs of one process, or the same in several"
)


def replicated(impl: Implementation) -> NamedSharding:
    """All of an array on each device of the map."""
    return impl.sharding(axis=None)


def to_all(value: Rows) -> Rows:
    """The same on every device."""
    return np.broadcast_to(value, (COUNT, *value.shape))


# --- A program in place of one that fails ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instead:
    """A program in place of that of the clause `fixes`: `make` gives what is called with rows.

    `model` is NumPy's result for all rows, of this `shape`.
    """

    key: str
    title: str
    fixes: str
    claim: str
    make: Callable[[Implementation], Callable[[Any], Any]]
    model: Callable[[Rows], Any]
    shape: tuple[int, ...] = (WIDTH,)
    columns: Callable[[Expectation], Columns] = everywhere


TRANSFORMS = "pmap-silence.transforms-of-the-map"
SLICING = "pmap-silence.output-slicing"
VARYING = "pmap-silence.varying-and-equal-values"
WEAK = "pmap-silence.weak-types"


def of_output(impl: Implementation, use: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A use of the doubled rows, as the map returns them."""
    function = impl.map(double())
    return lambda rows: use(function(rows))


def in_a_loop(start: Callable[[Any], Any]) -> Callable[[Implementation], Callable[[Any], Any]]:
    """A map of a loop that adds the row three times to what it starts from."""
    return lambda impl: impl.map(
        lambda x: lax.fori_loop(0, 3, lambda _, total: total + x, start(x))
    )


def by_keyword(impl: Implementation) -> Callable[[Any], Any]:
    """A wrapper that takes keywords."""
    mapped = impl.map(lambda x, y: 2 * x + y)
    wrapper: Callable[..., Any] = lambda x, y: mapped(x, y)  # noqa: E731  (as the page says it)
    return lambda rows: wrapper(y=rows, x=rows * 10)


def scanned(function: Mapped) -> Callable[[Any], Any]:
    """A scan, unrolled, that feeds a mapped function its own output once."""
    made: Callable[[Any], Any] = jax.jit(
        lambda x: lax.scan(lambda carry, _: (function(carry), None), x, None, 2, unroll=True)[0]
    )
    return made


INSTEAD: Mapping[str, Instead] = table(
    Instead(
        "vmap-inside",
        "jit of a map of vmap, in place of jit of vmap of a map.",
        "silences.of-map.jit-vmap",
        TRANSFORMS,
        lambda impl: jax.jit(impl.map(jax.vmap(psum()))),
        lambda rows: to_all(rows.sum(0)),
        (2, WIDTH),
    ),
    Instead(
        "jacfwd-inside",
        "A map of jacfwd, in place of jacfwd of a map.",
        "silences.of-map.jacfwd",
        TRANSFORMS,
        lambda impl: impl.map(jax.jacfwd(lambda x: x**3)),
        lambda rows: np.stack([np.diag(3 * row**2) for row in rows]),
    ),
    Instead(
        "hessian-inside",
        "A map of hessian, in place of hessian of a map.",
        "silences.of-map.hessian",
        TRANSFORMS,
        lambda impl: impl.map(jax.hessian(lambda x: (x**3).sum())),
        lambda rows: np.stack([np.diag(6 * row) for row in rows]),
    ),
    Instead(
        "unrolled-axis-index",
        "A scan with unroll=True around a map that calls axis_index.",
        "multi_controller.map.scan.axis-index",
        "pmap-silence.transforms-span-processes",
        lambda impl: scanned(impl.map(lambda x: x + lax.axis_index("i"))),
        lambda rows: rows + 2 * np.arange(COUNT, dtype=np.float32)[:, None],
    ),
    Instead(
        "slice-to-replicated",
        "A jit that returns half of the rows, with out_shardings of P().",
        "silences.output.jit-slice.half",
        SLICING,
        lambda impl: of_output(impl, jax.jit(lambda y: y[:4], out_shardings=replicated(impl))),
        lambda rows: rows[:4] * 2,
    ),
    Instead(
        "take-half",
        "A jit that takes half of the rows by jnp.take.",
        "silences.output.jit-slice.half",
        SLICING,
        lambda impl: of_output(impl, jax.jit(lambda y: jnp.take(y, jnp.arange(4), axis=0))),
        lambda rows: rows[:4] * 2,
    ),
    Instead(
        "reshape-on-the-host",
        "`np.asarray(y).reshape(2, 4, 3)` of a map's output of eight rows.",
        "silences.output.slice.reshape-split",
        SLICING,
        lambda impl: of_output(impl, lambda y: np.asarray(y).reshape(2, 4, WIDTH)),
        lambda rows: (rows * 2).reshape(2, 4, WIDTH),
    ),
    Instead(
        "reshape-replicated",
        "A reshape of a map's output of eight rows to two, after device_put to P().",
        "silences.output.slice.reshape-split",
        SLICING,
        lambda impl: of_output(
            impl, lambda y: jax.device_put(y, replicated(impl)).reshape(2, 4, WIDTH)
        ),
        lambda rows: (rows * 2).reshape(2, 4, WIDTH),
    ),
    Instead(
        "empty-under-jit",
        "An output without elements, of a map under jit.",
        "silences.empty.mapped",
        "pmap-silence.zero-size-arrays",
        lambda impl: jax.jit(impl.map(lambda x: x[:0])),
        lambda rows: np.zeros((COUNT, 0), np.float32),
    ),
    Instead(
        "loop-from-zeros-like",
        "A loop that starts from jnp.zeros_like of its row, in place of a cast.",
        "silences.varying.fori.checked",
        VARYING,
        in_a_loop(jnp.zeros_like),
        lambda rows: rows * 3,
    ),
    Instead(
        "loop-plus-nothing",
        "A loop that starts from zeros plus `0 * x`, in place of a cast.",
        "silences.varying.fori.checked",
        VARYING,
        in_a_loop(lambda x: jnp.zeros(WIDTH) + 0 * x),
        lambda rows: rows * 3,
    ),
    Instead(
        "weak-factor-cast",
        "float16 times a weakly typed row that the body casts by `y.astype(x.dtype)`.",
        "silences.weak.rows-plus-half",
        WEAK,
        lambda impl: (
            lambda rows: impl.map(lambda x, y: x * y.astype(x.dtype))(
                rows.astype(np.float16), jnp.broadcast_to(2.0, (COUNT,))
            )
        ),
        lambda rows: (rows * 2).astype(np.float16),
        (),
    ),
    Instead(
        "strong-before-psum",
        "A psum of `y.astype(y.dtype)` of a Python number, times int8.",
        "silences.weak.psum-of-float",
        WEAK,
        lambda impl: (
            lambda rows: impl.map(
                lambda x, y: lax.psum(y.astype(y.dtype), "i") * x, in_axes=(0, None)
            )(rows.astype(np.int8), jnp.asarray(100))
        ),
        lambda rows: rows.astype(np.int32) * 800,
        (),
    ),
    Instead(
        "keywords-by-a-wrapper",
        "`lambda x, y: mapped(x, y)` takes keywords.",
        "errors.arguments.keyword",
        "pmap-silence.pytrees-and-keywords",
        by_keyword,
        lambda rows: rows * 21,
    ),
)


@DEFAULTS.family(
    "silences.fix.{instead}",
    instead=INSTEAD,
    expect=lambda instead: instead.columns(
        twice(returns(lambda place: instead.model(place.all_rows(*instead.shape))))
    ),
)
def instead_called(impl: Implementation, cluster: Cluster, instead: Instead) -> None:
    """The program that a known issue's page gives."""
    cluster.twice(instead.make(impl), cluster.rows(*instead.shape))


# --- Caches cleared between two uses of one function ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Between:
    """Two uses of a mapped function that doubles, of which the second fails without clearing."""

    key: str
    text: str
    fixes: str
    claim: str
    first: Callable[[Mapped, Rows], Any]
    second: Callable[[Mapped, Rows], Any]
    second_shape: tuple[int, ...] = (WIDTH,)


def plainly(function: Mapped, rows: Rows) -> Any:
    """A call."""
    return function(rows)


def without_jit(function: Mapped, rows: Rows) -> Any:
    """A call with jit disabled."""
    with jax.disable_jit():
        return function(rows)


BETWEEN: Mapping[str, Between] = table(
    Between(
        "another-shape",
        "a call with rows of another shape",
        "silences.retraces.shapes",
        "pmap-silence.retraces",
        plainly,
        plainly,
        (WIDTH + 1,),
    ),
    Between(
        "jit-disabled",
        "another call with jit disabled",
        "silences.debugging.disable-jit.double",
        "pmap-silence.debugging",
        without_jit,
        without_jit,
    ),
    Between(
        "lowering",
        "lower(), compile() and a call of the compiled stage",
        "errors.lowered.one-process-map-after-a-call",
        "pmap-silence.lowered-one-process",
        plainly,
        lambda function, rows: jax.tree.leaves(function.lower(rows).compile()(rows))[0],
    ),
    Between(
        "jit",
        "a call under jit",
        "indexing.under-jit.and-by-itself",
        TRANSFORMS,
        plainly,
        lambda function, rows: jax.jit(lambda x: function(x))(rows),
    ),
    Between(
        "gradient-under-jit",
        "a gradient under jit, after one without",
        "rewriting.gradients.outside.own-first.rows",
        "pmap-silence.gradient-outside-the-map",
        lambda function, rows: jax.grad(lambda x: function(x).sum())(rows) * rows,
        lambda function, rows: jax.jit(jax.grad(lambda x: function(x).sum()))(rows) * rows,
    ),
)


@DEFAULTS.family(
    "silences.fix.cleared-before-{between}",
    between=BETWEEN,
    title="jax.clear_caches() between a use of a mapped function and {between.text}.",
    expect=lambda between: everywhere(
        steps(
            first_use=returns(doubled(WIDTH)),
            second_use=returns(doubled(*between.second_shape)),
        )
    ),
)
def cleared(impl: Implementation, cluster: Cluster, between: Between) -> None:
    """Two uses of one mapped function, with cleared caches between them."""
    function = impl.map(double())
    cluster.step("first use", between.first, function, cluster.rows(WIDTH))
    jax.clear_caches()
    cluster.step("second use", between.second, function, cluster.rows(*between.second_shape))


@dataclass(frozen=True, slots=True)
class Mended:
    """What makes a function usable again whose first call failed: `again` maps its body."""

    key: str
    text: str
    again: Callable[[Implementation, Mapped, Callable[[Any], Any]], Callable[[Any], Any]]


def with_cleared_caches(
    impl: Implementation, function: Mapped, body: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """The same wrapper, after jax.clear_caches()."""
    jax.clear_caches()
    return function


MENDED: Mapping[str, Mended] = table(
    Mended("cleared", "jax.clear_caches()", with_cleared_caches),
    Mended(
        "new-function",
        "a map of `lambda x: f(x)`",
        lambda impl, function, body: impl.map(lambda x: body(x)),
    ),
)


@DEFAULTS.family(
    "silences.fix.failed-trace.{mended}",
    mended=MENDED,
    claim="pmap-silence.debugging",
    title="After its body raised once, a mapped function works by {mended.text}.",
    fixes="silences.debugging.disable-jit.number",
    expect=everywhere(
        steps(
            failing=raises(RuntimeError, "^not ready$", phase="trace"),
            again=returns(doubled(WIDTH)),
        )
    ),
)
def failed_trace(impl: Implementation, cluster: Cluster, mended: Mended) -> None:
    """A body that raises in its first trace only."""
    ready: list[bool] = []

    def body(x: Any) -> Any:
        if not ready:
            raise RuntimeError("not ready")
        return x * 2

    function, rows = impl.map(body), cluster.rows(WIDTH)
    cluster.step("failing", function, rows)
    ready.append(True)
    cluster.step("again", mended.again(impl, function, body), rows)


HALF = COUNT // 2


@DEFAULTS.clause(
    "silences.fix.cleared-after-a-failed-call",
    claim="migrate-pmap.context-mesh",
    title="After a call that was refused inside another map, a pmap works once caches are cleared.",
    fixes="errors.context-mesh.different-names",
    expect=of_new_pmap(
        steps(
            failing=raises(ValueError, "context mesh", phase="trace"),
            again=returns(lambda place: place.all_rows(WIDTH)[:HALF] * 2, text="rows, doubled"),
        ),
        "legacy pmap may be called inside a map, and shard_map is no map of its own there",
    ),
)
def cleared_after_a_failed_call(impl: Implementation, cluster: Cluster) -> None:
    """A pmap that is called first inside another one, then by itself."""
    function = impl.map(double(), "j", devices=cluster.devices[:HALF])
    outer = impl.map(lambda x: function(x), "i", devices=cluster.devices[:2])
    rows = cluster.rows(WIDTH)
    cluster.step("failing", outer, rows.reshape(2, HALF, WIDTH))
    jax.clear_caches()
    cluster.step("again", function, rows[:HALF])


# --- What a map, its results and its errors say ---------------------------------------------------


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
                r"tracing the function branching at \S*fixes\.py:\d+ for jit\. ",
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
    fixes="errors.lowered.one-process-map",
    expect=everywhere(
        twice(returns(lambda place: {"a": place.rows(WIDTH) * 2}, text="the rows, doubled"))
    ),
)
def stage_of_jit(impl: Implementation, cluster: Cluster) -> None:
    """A map of a dict, lowered under jit and compiled."""
    function = impl.map(lambda tree: {"a": tree["a"] * 2})
    rows = {"a": cluster.rows(WIDTH)}
    cluster.twice(jax.jit(lambda tree: function(tree)).lower(rows).compile(), rows)


# --- Programs that map nothing, or only by shard_map ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Plain:
    """A program of JAX alone, of all devices and of rows, and NumPy's result."""

    key: str
    title: str
    fixes: str | None
    claim: str
    run: Callable[[Sequence[jax.Device], Rows], Any]
    model: Callable[[Rows], Any]


def explicit(all_devices: Sequence[jax.Device], *names: str) -> Mesh:
    """A mesh of Explicit axes: of one, or of two that split the devices in halves."""
    shape = (COUNT,) if len(names) == 1 else (2, COUNT // 2)
    kinds = (AxisType.Explicit,) * len(names)
    return Mesh(np.array(all_devices).reshape(shape), names, axis_types=kinds)


def typed_rows(all_devices: Sequence[jax.Device], rows: Rows) -> jax.Array:
    """Rows over an Explicit axis."""
    return jax.device_put(rows, NamedSharding(explicit(all_devices, "i"), P("i")))


def on_mesh(x: jax.Array, *spec: str) -> jax.Array:
    """An array of an Explicit mesh, resharded over it."""
    sharding: Any = x.sharding
    resharded: jax.Array = jax.sharding.reshard(x, NamedSharding(sharding.mesh, P(*spec)))
    return resharded


def index_under_jit(x: jax.Array) -> Any:
    """An index of an array of an Explicit mesh, resharded to P(), under jit."""
    sharding: Any = x.sharding
    whole = NamedSharding(sharding.mesh, P())
    return jax.jit(lambda x: jax.sharding.reshard(x, whole)[0])(x)


def in_shardings_twice(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """Two calls of a jit with in_shardings, of rows that were on the devices in another order."""
    wanted = NamedSharding(Mesh(np.array(all_devices), ("i",)), P("i"))
    reverse = NamedSharding(Mesh(np.array(all_devices[::-1]), ("i",)), P("i"))
    function = jax.jit(lambda x: x * 2, in_shardings=wanted)
    given = jax.device_put(rows, reverse)
    return [function(jax.device_put(given, wanted)) for _ in range(2)]


def onto_another(all_devices: Sequence[jax.Device], x: Any) -> Any:
    """Put on an Explicit mesh with other names."""
    return jax.device_put(x, NamedSharding(explicit(all_devices, "k", "l"), P("k")))


def unreduced_sum(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """An array that is unreduced over the devices, with zeros on all but one, and its sum."""
    mesh = explicit(all_devices, "i")
    shards = [
        jax.device_put(rows if number == 0 else np.zeros_like(rows), device)
        for number, device in enumerate(all_devices)
    ]
    sharding = NamedSharding(mesh, P(unreduced={"i"}))
    x = jax.make_array_from_single_device_arrays(rows.shape, sharding, shards)
    return jax.jit(lambda x: jax.sharding.reshard(x, NamedSharding(mesh, P())))(x)


def on_auto_axes(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """Rows over an axis of a mesh that make_mesh makes of Auto axes, with warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = jax.make_mesh((COUNT,), ("i",), axis_types=(AxisType.Auto,), devices=all_devices)
    if set(mesh.axis_types) != {AxisType.Auto}:
        raise TypeError(f"the axes are {mesh.axis_types}")
    return jax.device_put(rows, NamedSharding(mesh, P("i")))


def named_as_the_map(all_devices: Sequence[jax.Device], rows: Rows) -> Any:
    """A shard_map over an Explicit axis, of rows over one with another name."""
    mesh = explicit(all_devices, "i")
    x = jax.device_put(rows, NamedSharding(explicit(all_devices, "k"), P("k")))
    mapped = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    return mapped(jax.sharding.reshard(x, NamedSharding(mesh, P("i"))))


PLAIN: Mapping[str, Plain] = table(
    Plain(
        "explicit-index",
        "An index of an array on Explicit axes, after reshard to P().",
        "indexing.leading.zero-explicit-result",
        "migrate-pmap.index-leading-dimension-sharded",
        lambda all, rows: on_mesh(typed_rows(all, rows))[0],
        lambda rows: rows[0],
    ),
    Plain(
        "explicit-index-under-jit",
        "An index of an array on Explicit axes under jit, after reshard to P().",
        "indexing.leading.jit-zero-explicit-result",
        "migrate-pmap.index-leading-dimension-sharded",
        lambda all, rows: index_under_jit(typed_rows(all, rows)),
        lambda rows: rows[0],
    ),
    Plain(
        "in-shardings-put-before",
        "Rows on devices in another order, put on a jit's own sharding before each call.",
        "errors.incompatible-devices.jit-in-shardings",
        "pmap-silence.incompatible-devices-second-call",
        in_shardings_twice,
        lambda rows: [rows * 2] * 2,
    ),
    Plain(
        "another-mesh-by-the-host",
        "device_put of np.asarray of an array of an Explicit mesh to another Explicit mesh.",
        "sharded_computation.types.other-mesh",
        "parallel.arrays-of-several-meshes",
        lambda all, rows: onto_another(all, np.asarray(typed_rows(all, rows))),
        lambda rows: rows,
    ),
    Plain(
        "another-mesh-by-reshard",
        "device_put of an array of an Explicit mesh, resharded to P(), to another Explicit mesh.",
        "sharded_computation.types.other-mesh",
        "parallel.arrays-of-several-meshes",
        lambda all, rows: onto_another(all, on_mesh(typed_rows(all, rows))),
        lambda rows: rows,
    ),
    Plain(
        "unreduced-from-shards",
        "An unreduced array made of shards, of which all but one are zeros.",
        "sharded_computation.unreduced.numpy",
        "parallel.unreduced",
        unreduced_sum,
        lambda rows: rows,
    ),
    Plain(
        "auto-axes-named",
        "make_mesh with `axis_types=(AxisType.Auto,)` gives no warning.",
        None,
        "multi-process.mesh-same-as-make-mesh",
        on_auto_axes,
        lambda rows: rows,
    ),
    Plain(
        "axis-name-of-the-map",
        "reshard puts an array of an Explicit mesh with another axis name on the map's mesh.",
        "inputs.aligned.plain.explicit.other-axis-name",
        "migrate-pmap.shard-map-global-view",
        named_as_the_map,
        lambda rows: rows * 2,
    ),
    Plain(
        "single-device-sharding",
        "device_put with jax.sharding.SingleDeviceSharding.",
        "switches.names.single-device-sharding",
        "migrate-pmap.name-single-device-sharding",
        lambda all, rows: jax.device_put(rows, jax.sharding.SingleDeviceSharding(all[-1])),
        lambda rows: rows,
    ),
    Plain(
        "tree-map",
        "jax.tree.map in place of jax.tree_map.",
        "switches.names.tree-map",
        "migrate-pmap.unreplicate-is-index-zero",
        lambda all, rows: jax.tree.map(lambda x: x[0], {"a": rows, "b": (rows * 2,)}),
        lambda rows: {"a": rows[0], "b": (rows[0] * 2,)},
    ),
)


@DEFAULTS.family(
    "silences.fix.{plain}",
    plain=PLAIN,
    expect=lambda plain: of_jax(twice(returns(lambda place: plain.model(place.all_rows(WIDTH))))),
)
def plain_program(impl: Implementation, cluster: Cluster, plain: Plain) -> None:
    """A program of JAX alone, twice."""
    cluster.twice(lambda rows: plain.run(cluster.devices, rows), cluster.rows(WIDTH))


@DEFAULTS.clause(
    "silences.fix.constraint-with-mesh",
    claim="pmap-silence.partly-manual-maps",
    title="`with mesh:` around a call lets a body over some axes be constrained along the others.",
    fixes="sharded_computation.partly-manual.constraint",
    expect=of_shard_map(twice(returns(doubled(4))), "pmap has no axes beside its own"),
)
def constraint_with_mesh(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over one of two axes, whose body constrains its rows along the other."""
    kinds = (AxisType.Auto,) * 2
    mesh = Mesh(np.array(cluster.devices).reshape(2, 4), ("i", "k"), axis_types=kinds)
    mapped = jax.shard_map(
        lambda x: lax.with_sharding_constraint(x * 2, P(None, "k")),
        mesh=mesh,
        in_specs=P("i"),
        out_specs=P("i"),
        axis_names={"i"},
    )
    function = impl.adopt(jax.jit(mapped), "jit(shard_map)")

    def called(rows: Any) -> Any:
        with mesh:
            return function(rows)

    cluster.twice(called, cluster.rows(4))
