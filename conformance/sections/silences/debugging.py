"""Debugging tools: eval_shape, disable_jit, NaN checks, prints and callbacks."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify, io_callback

from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_pmaps, unless_legacy
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, noted, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import doubled, psum
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row

DEFAULTS = Defaults(
    claim="pmap-silence.debugging",
    needs=devices(COUNT),
    left_out="callbacks run on each process's own host",
)


# --- Shapes alone --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """The arguments of `jax.eval_shape`, and its result."""

    key: str
    text: str
    rows: tuple[int, ...]
    answer: tuple[int, ...]
    out_axes: int | None = 0


SHAPES: Mapping[str, Shape] = table(
    Shape("out-0", "out_axes=0", (COUNT, WIDTH), (COUNT, WIDTH)),
    Shape("out-1", "out_axes=1", (COUNT, WIDTH), (WIDTH, COUNT), 1),
    Shape("out-none", "out_axes=None", (COUNT, WIDTH), (WIDTH,), None),
)


@DEFAULTS.family(
    "silences.debugging.eval-shape.{shape}",
    shape=SHAPES,
    title="`jax.eval_shape` of a mapped function with {shape.text} computes nothing.",
    fact="silences.debugging.eval-shape",
    left_out="the claim is about one process",
    expect=lambda shape: everywhere(
        twice(
            returns(
                lambda _: [*map(np.asarray, (*shape.answer, 4))], text=f"{shape.answer}, float32"
            )
        )
    ),
)
def evaluated(impl: Implementation, cluster: Cluster, shape: Shape) -> None:
    """A map, asked for its shapes."""
    function = impl.map(psum(), out_axes=shape.out_axes)

    def asked() -> Any:
        answer = jax.eval_shape(function, jax.ShapeDtypeStruct(shape.rows, np.float32))
        return [*map(np.asarray, (*answer.shape, answer.dtype.itemsize))]

    cluster.twice(asked)


# --- Without jit ---------------------------------------------------------------------------------


@described("the rows, each with its device's index")
def index_added(place: Place) -> Any:
    return place.all_rows(WIDTH) + np.arange(COUNT, dtype=np.float32)[:, None]


@described("the sum of all rows, on each device")
def summed(place: Place) -> Any:
    return np.broadcast_to(place.all_rows(WIDTH).sum(0), (COUNT, WIDTH))


@dataclass(frozen=True, slots=True)
class Eager:
    """A body that is mapped while jit is off."""

    key: str
    text: str
    body: Callable[[Any], Any]
    expected: Expectation


EAGER: Mapping[str, Eager] = table(
    Eager("double", "computes", lambda x: x * 2, twice(returns(doubled(WIDTH)))),
    Eager("psum", "sums over the devices", lambda x: jax.lax.psum(x, "i"), twice(returns(summed))),
    Eager(
        "axis-index",
        "calls `axis_index`",
        lambda x: x + jax.lax.axis_index("i"),
        twice(returns(index_added)),
    ),
    Eager(
        "number",
        "converts a value to a Python number",
        lambda x: x if float(x[0]) > 5 else -x,
        twice(raises(jax.errors.ConcretizationTypeError, "^Abstract tracer value encountered")),
    ),
)


@DEFAULTS.family(
    "silences.debugging.disable-jit.{eager}",
    eager=EAGER,
    title="Under `jax.disable_jit()`, a mapped function whose body {eager.text}.",
    fact="silences.debugging.disable-jit",
    expect=lambda eager: everywhere(eager.expected),
)
def unjitted(impl: Implementation, cluster: Cluster, eager: Eager) -> None:
    """A map while jit is off."""
    function = impl.map(lambda x: eager.body(x))
    rows = cluster.rows(WIDTH)

    def call() -> Any:
        with jax.disable_jit():
            return function(rows)

    cluster.twice(call)


# --- Checks --------------------------------------------------------------------------------------


@contextmanager
def turned_on(setting: str) -> Iterator[None]:
    """With one of JAX's settings on."""
    before = jax.config.values[setting]
    jax.config.update(setting, True)
    try:
        yield
    finally:
        jax.config.update(setting, before)


@dataclass(frozen=True, slots=True)
class Check:
    """A setting, a body, and what a call comes to."""

    key: str
    text: str
    setting: str
    body: Callable[[Any], Any]
    expected: Expectation


CHECKS: Mapping[str, Check] = table(
    Check(
        "nans-none",
        "jax_debug_nans, without a NaN",
        "jax_debug_nans",
        lambda x: x * 2,
        twice(returns(doubled())),
    ),
    Check(
        "nans",
        "jax_debug_nans, with a NaN on one device",
        "jax_debug_nans",
        lambda x: jnp.log(x - 2),
        twice(
            raises(
                FloatingPointError,
                r"^[Ii]nvalid value \(nan\) encountered in (parallel|sharded) computation",
            )
        ),
    ),
    Check(
        "infs",
        "jax_debug_infs, with an infinity on one device",
        "jax_debug_infs",
        lambda x: 1 / (x - 2),
        twice(
            raises(
                FloatingPointError,
                r"^[Ii]nvalid value \(inf\) encountered in (parallel|sharded) computation",
            )
        ),
    ),
    Check(
        "leaks",
        "jax_check_tracer_leaks",
        "jax_check_tracer_leaks",
        lambda x: x * 2,
        twice(returns(doubled())),
    ),
)


@DEFAULTS.family(
    "silences.debugging.check.{check}",
    check=CHECKS,
    title="A mapped function under {check.text}.",
    fact="silences.debugging.check",
    expect=lambda check: everywhere(check.expected),
)
def checked(impl: Implementation, cluster: Cluster, check: Check) -> None:
    """A map under one of JAX's checks."""
    function = impl.map(lambda x: check.body(x))
    rows = cluster.rows()

    def call() -> Any:
        with turned_on(check.setting):
            return jax.block_until_ready(function(rows))

    cluster.twice(call)


# --- Callbacks -----------------------------------------------------------------------------------

ORDERED = (
    "^(Ordered effects not supported in `pmap`|The following ordered effects are not supported)"
)


@dataclass(frozen=True, slots=True)
class Callback:
    """A call of the host from the body: `call(host, x)` gives what the body returns.

    `host` notes what it is given and returns it doubled. An ordered one legacy refuses.
    """

    key: str
    text: str
    call: Callable[[Callable[[Any], Any], Any], Any]
    factor: int = 2  # what the body returns, as times the row
    ordered: bool = False
    sums: bool = False

    def columns(self) -> Columns:
        """The values returned, and those that the host was given, once of each device."""
        if self.ordered:
            return everywhere(twice(raises(ValueError, ORDERED, phase="lower")))

        def model(place: Place) -> Any:
            rows = place.all_rows()
            return (np.full_like(rows, rows.sum()) if self.sums else rows) * self.factor

        def is_received(place: Place, seen: Any) -> bool:
            rows = place.all_rows()
            return bool(
                seen == sorted((np.full_like(rows, rows.sum()) if self.sums else rows).tolist())
            )

        return everywhere(
            twice(
                every(
                    returns(model, text="what the host returned to each device"),
                    noted("host", "the host is given each device's value once", is_received),
                )
            )
        )


SCALAR = jax.ShapeDtypeStruct((), np.float32)


def printed(host: Callable[[Any], Any], x: Any, *, ordered: bool = False) -> Any:
    """Receive the arguments of jax.debug.callback; return nothing."""
    jax.debug.callback(lambda v: (host(v), None)[1], x, ordered=ordered)
    return x


CALLBACKS: Mapping[str, Callback] = table(
    Callback("pure", "pure_callback", lambda host, x: jax.pure_callback(host, SCALAR, x)),
    Callback(
        "pure-of-psum",
        "pure_callback of a psum",
        lambda host, x: jax.pure_callback(host, SCALAR, jax.lax.psum(x, "i")),
        sums=True,
    ),
    Callback("io", "io_callback", lambda host, x: io_callback(host, SCALAR, x)),
    Callback(
        "io-of-psum",
        "io_callback of a psum",
        lambda host, x: io_callback(host, SCALAR, jax.lax.psum(x, "i")),
        sums=True,
    ),
    Callback("debug", "jax.debug.callback", printed, factor=1),
    Callback(
        "debug-of-psum",
        "jax.debug.callback of a psum",
        lambda host, x: printed(host, jax.lax.psum(x, "i")),
        factor=1,
        sums=True,
    ),
    Callback(
        "print",
        "jax.debug.print",
        lambda host, x: (jax.debug.print("{}", x), x)[1],
        factor=1,
    ),
    Callback(
        "io-ordered",
        "io_callback with ordered=True",
        lambda host, x: io_callback(host, SCALAR, x, ordered=True),
        ordered=True,
    ),
    Callback(
        "debug-ordered",
        "jax.debug.callback with ordered=True",
        lambda host, x: printed(host, x, ordered=True),
        ordered=True,
    ),
)


class Printed(io.TextIOBase):
    """A standard output that hands the host each number that is printed."""

    def __init__(self, host: Callable[[Any], Any]) -> None:
        self._host = host

    def write(self, text: str) -> int:
        for number in text.split():
            self._host(float(number))
        return len(text)


@DEFAULTS.family(
    "silences.debugging.callback.{callback}",
    callback=CALLBACKS,
    title="A mapped function whose body calls back to the host: {callback.text}.",
    fact=lambda callback: (
        f"silences.debugging.callback.{'ordered' if callback.ordered else 'taken'}"
    ),
    expect=lambda callback: callback.columns(),
)
def called_back(impl: Implementation, cluster: Cluster, callback: Callback) -> None:
    """A body that calls the host."""
    seen: list[float] = []
    lock = threading.Lock()

    def host(value: Any) -> Any:
        with lock:
            seen.append(float(np.asarray(value)))
        return np.asarray(value) * 2

    function = impl.map(lambda x: callback.call(host, x))
    rows = cluster.rows()

    def call() -> Any:
        with redirect_stdout(Printed(host)):
            result = jax.block_until_ready(function(rows))
            jax.effects_barrier()
        return result

    for name in ("first call", "second call"):
        seen.clear()
        cluster.step(name, call)
        cluster.note("host", sorted(seen))


ROW = jax.ShapeDtypeStruct((WIDTH,), np.float32)


@DEFAULTS.clause(
    "silences.debugging.callback-of-two-results",
    fact="silences.debugging.callback.taken",
    expect=everywhere(
        twice(
            returns(
                lambda place: (place.rows(WIDTH) + 1, place.rows(WIDTH) * 2),
                text="the rows plus one, and the rows doubled",
            )
        )
    ),
)
def called_back_for_two(impl: Implementation, cluster: Cluster) -> None:
    """A map whose body calls the host by a pure_callback with two results."""

    def host(x: Any) -> tuple[Any, Any]:
        return np.asarray(x) + 1, np.asarray(x) * 2

    function = impl.map(lambda x: jax.pure_callback(host, (ROW, ROW), x))
    cluster.twice(function, cluster.rows(WIDTH))


MAP, PLAIN = "the map", "a plain jit"


@DEFAULTS.clause(
    "silences.debugging.callback-ordered-then-plain",
    cause="ordered-io-callback-taken",
    expect=unless_legacy(
        every(
            in_steps(raises(ValueError, ORDERED, phase="lower"), MAP),
            in_steps(returns(doubled(WIDTH)), PLAIN),
        ),
        in_steps(returns(doubled(WIDTH)), MAP, PLAIN),
    ),
)
def called_back_in_order(impl: Implementation, cluster: Cluster) -> None:
    """A map whose body calls the host in order, without a result; then that body under a jit."""

    def body(x: Any) -> Any:
        io_callback(lambda _: None, (), x, ordered=True)
        return x * 2

    rows = cluster.rows(WIDTH)
    cluster.step(MAP, impl.map(body), rows)
    cluster.step(PLAIN, jax.jit(body), rows)


# --- Checks and shardings of values --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checked:
    """The place of `checkify.check` in the program, and whether its condition holds."""

    key: str
    text: str
    inside: bool
    fails: bool
    under_mesh: bool = False


CHECKED: Mapping[str, Checked] = table(
    Checked("inside-holds", "in its body, which holds", True, False),
    Checked("inside-fails", "in its body, which fails", True, True),
    Checked("before-holds", "before the mapped function, which holds", False, False),
    Checked("before-fails", "before the mapped function, which fails", False, True),
    Checked("under-mesh", "before the mapped function, under `jax.set_mesh`", False, False, True),
)


@DEFAULTS.family(
    "silences.debugging.checkify.{checked}",
    checked=CHECKED,
    title="`checkify` of a mapped function with a check {checked.text}.",
    fact="silences.debugging.checkify",
    expect=lambda checked: everywhere(
        twice(
            returns(
                lambda place: [np.array(checked.fails), place.rows(WIDTH) * 2],
                text=f"{'an error' if checked.fails else 'no error'}, and the rows doubled",
            )
        )
    ),
)
def checkified(impl: Implementation, cluster: Cluster, checked: Checked) -> None:
    """A map in a function whose checks are collected."""

    def check(x: Any) -> None:
        checkify.check(jnp.min(x) > (1000 if checked.fails else -1), "the rows are too small")

    def body(x: Any) -> Any:
        if checked.inside:
            check(x)
        return x * 2

    function = impl.map(body, "i")

    def program(x: Any) -> Any:
        if not checked.inside:
            check(x)
        return function(x)

    mesh = jax.set_mesh(impl.mesh("i", cluster.devices)) if checked.under_mesh else nullcontext()

    def asked() -> Any:
        error, out = checkify.checkify(program)(jnp.asarray(cluster.rows(WIDTH)))
        return [np.array(error.get() is not None), out]

    with mesh:
        cluster.twice(asked)


@DEFAULTS.clause(
    "silences.debugging.inspect-sharding",
    expect=unless_legacy(
        twice(raises(NotImplementedError, "ReplicaAxisContext", phase="lower")),
        twice(returns(lambda place: place.rows(WIDTH) * 2, text="the rows, doubled")),
    ),
)
def inspected(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function whose body calls `inspect_array_sharding`."""

    def body(x: Any) -> Any:
        jax.debug.inspect_array_sharding(x, callback=lambda _: None)
        return x * 2

    cluster.twice(impl.map(body), cluster.rows(WIDTH))


# --- The error of a body that branches on a value ------------------------------------------------


BRANCHES = raises(
    jax.errors.TracerBoolConversionError,
    r"^Attempted boolean conversion of traced array with shape bool\[\]\..* while tracing the "
    r"function branching_body at \S*debugging\.py:\d+ for \w+\. ",
    phase="trace",
)


@DEFAULTS.clause(
    "silences.debugging.branch-on-a-value",
    expect=of_pmaps(twice(BRANCHES), "impl.map wraps the body in a function of its own there"),
)
def branch_on_a_value(impl: Implementation, cluster: Cluster) -> None:
    """The error of a Python `if` on a mapped value names the function, its file and line."""

    def branching_body(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    cluster.twice(impl.map(branching_body), impl.given(cluster.rows(WIDTH)))


# --- What a call prints ----------------------------------------------------------------------


@DEFAULTS.clause(
    "silences.debugging.prints-nothing",
    title="A call of a mapped function writes nothing to Python's standard output and error.",
    expect=everywhere(
        twice(
            every(
                returns(doubled(WIDTH)),
                noted("printed", "prints nothing", lambda _, printed: printed == ""),
            )
        )
    ),
)
def prints_nothing(impl: Implementation, cluster: Cluster) -> None:
    """A map whose body prints nothing, called while what is printed is kept."""
    function = impl.map(lambda x: x * 2)
    rows = impl.given(cluster.rows(WIDTH))
    for name in TWICE:
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            cluster.step(name, function, rows)
        cluster.note("printed", printed.getvalue())
