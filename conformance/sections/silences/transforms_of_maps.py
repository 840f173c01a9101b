"""Transforms of a mapped function: jit, vmap, derivatives, checkpoint and control flow around it.

These are the values of one process; multi_controller tests whether collectives still span several,
and rewriting tests derivatives of each kind of parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, unless_legacy
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.family import family, table
from conformance.spec.topology import Place
from conformance.worker.bodies import Body, double, psum
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]
Mapped = Callable[..., Any]

COUNT = 8  # devices
WIDTH = 3  # of a row

# Legacy pmap's error for out_axes=None within another program.
NO_AXIS = twice(
    raises(TypeError, "^'NoneType' object cannot be interpreted as an integer$", phase="lower")
)


def psum_squares() -> Body:
    """The sum of the squares of all rows."""
    return lambda x: lax.psum(x**2, "i")


def cube() -> Body:
    """The third power."""
    return lambda x: x**3


@dataclass(frozen=True, slots=True)
class Transform:
    """`apply` transforms a mapped `body` and calls it; `model` is NumPy's result for all rows."""

    key: str
    text: str
    body: Callable[[], Body]
    apply: Callable[[Mapped, Any], Any]
    model: Callable[[Rows], Any]
    shape: tuple[int, ...] = (WIDTH,)
    out_axes: int | None = 0
    taken: bool = True

    def columns(self) -> Columns:
        """The right values, of legacy only what it takes."""

        def model(place: Place) -> Any:
            return self.model(place.all_rows(*self.shape))

        right = twice(returns(model, text=f"what NumPy gives for {self.text}"))
        return everywhere(right) if self.taken else unless_legacy(NO_AXIS, right)


def to_all(value: Rows) -> Rows:
    """The same on every device."""
    return np.broadcast_to(value, (COUNT, *value.shape))


def every_device_of_each(rows: Rows) -> Rows:
    """The derivative of each device's sum of squares by each number."""
    return np.broadcast_to(2 * rows, (COUNT, COUNT))


TRANSFORMS: Mapping[str, Transform] = table(
    Transform("jit", "jit", double, lambda f, a: jax.jit(lambda x: f(x))(a), lambda a: a * 2),
    Transform(
        "jit-twice",
        "jit of two calls",
        double,
        lambda f, a: jax.jit(lambda x: f(f(x) + 1))(a),
        lambda a: a * 4 + 2,
    ),
    Transform(
        "jit-constant",
        "jit, with a NumPy array that is no argument of it",
        lambda: lambda x, y: x * y,
        lambda f, a: jax.jit(lambda x: f(x, a))(a),
        lambda a: a**2,
    ),
    Transform(
        "jit-constant-jax",
        "jit, with a JAX array that is no argument of it",
        lambda: lambda x, y: x * y,
        lambda f, a: (lambda y: jax.jit(lambda x: f(x, y))(a))(jnp.asarray(a)),
        lambda a: a**2,
    ),
    Transform(
        "lowered-jit",
        "jit, lowered and compiled",
        double,
        lambda f, a: jax.jit(lambda x: f(x)).lower(a).compile()(a),
        lambda a: a * 2,
    ),
    Transform(
        "vmap-leading",
        "vmap over the leading axis",
        psum,
        lambda f, a: jax.vmap(lambda x: f(x))(a.swapaxes(0, 1)),
        lambda a: np.stack([to_all(a.sum(0)[k]) for k in range(2)]),
        (2, WIDTH),
    ),
    Transform(
        "vmap-behind",
        "vmap over the axis after the mapped one",
        psum,
        lambda f, a: jax.vmap(lambda x: f(x), 1, 1)(a),
        lambda a: to_all(a.sum(0)),
        (2, WIDTH),
    ),
    Transform(
        "vmap-of-vmap",
        "vmap of vmap",
        psum,
        lambda f, a: jax.vmap(jax.vmap(lambda x: f(x), 1, 1), 2, 2)(a),
        lambda a: to_all(a.sum(0)),
        (2, 2, WIDTH),
    ),
    Transform(
        "vmap-named",
        "vmap with an axis name, over which the body sums too",
        lambda: lambda x: lax.psum(x, ("i", "v")),
        lambda f, a: jax.vmap(lambda x: f(x), 1, 1, axis_name="v")(a),
        lambda a: np.broadcast_to(a.sum((0, 1)), a.shape),
        (2, WIDTH),
    ),
    Transform(
        "vmap-named-alone",
        "vmap with an axis name, over which alone the body sums",
        lambda: lambda x: lax.psum(x, "v"),
        lambda f, a: jax.vmap(lambda x: f(x), 1, 1, axis_name="v")(a),
        lambda a: np.broadcast_to(a.sum(1, keepdims=True), a.shape),
        (2, WIDTH),
    ),
    Transform(
        "vmap-named-index",
        "vmap with an axis name, whose axis_index the body adds",
        lambda: lambda x: x + lax.axis_index("v"),
        lambda f, a: jax.vmap(lambda x: f(x), 1, 1, axis_name="v")(a),
        lambda a: a + np.arange(2, dtype=np.float32)[:, None],
        (2, WIDTH),
    ),
    Transform(
        "jit-vmap",
        "jit of vmap",
        psum,
        lambda f, a: jax.jit(jax.vmap(lambda x: f(x), 1, 1))(a),
        lambda a: to_all(a.sum(0)),
        (2, WIDTH),
    ),
    Transform(
        "jvp",
        "jvp",
        psum_squares,
        lambda f, a: jax.jvp(lambda x: f(x), (a,), (a,)),
        lambda a: (to_all((a**2).sum(0)), to_all(2 * (a**2).sum(0))),
    ),
    Transform(
        "jacfwd",
        "jacfwd",
        psum_squares,
        lambda f, a: jax.jacfwd(lambda x: f(x))(a),
        every_device_of_each,
        (),
    ),
    Transform(
        "jacrev",
        "jacrev",
        psum_squares,
        lambda f, a: jax.jacrev(lambda x: f(x))(a),
        every_device_of_each,
        (),
    ),
    Transform(
        "hessian",
        "hessian",
        cube,
        lambda f, a: jax.hessian(lambda x: f(x).sum())(a),
        lambda a: np.diag(6 * a),
        (),
    ),
    Transform(
        "linearize",
        "linearize",
        psum_squares,
        lambda f, a: jax.linearize(lambda x: f(x), a)[1](a),
        lambda a: to_all(2 * (a**2).sum(0)),
    ),
    Transform(
        "checkpoint",
        "checkpoint",
        double,
        lambda f, a: jax.checkpoint(lambda x: f(x))(a),
        lambda a: a * 2,
    ),
    Transform(
        "grad-checkpoint",
        "grad of checkpoint",
        cube,
        lambda f, a: jax.grad(lambda x: jax.checkpoint(lambda y: f(y))(x).sum())(a),
        lambda a: 3 * a**2,
    ),
    Transform(
        "scan",
        "scan, with its result as carry and output",
        psum,
        lambda f, a: lax.scan(lambda x, _: (f(x), f(x * 2)), a, None, length=2),
        lambda a: (
            to_all(a.sum(0) * COUNT),
            np.stack([to_all(a.sum(0) * 2), to_all(a.sum(0) * 2 * COUNT)]),
        ),
    ),
    Transform(
        "fori",
        "fori_loop",
        double,
        lambda f, a: lax.fori_loop(0, 3, lambda _, x: f(x), a),
        lambda a: a * 8,
    ),
    Transform(
        "while",
        "while_loop",
        double,
        lambda f, a: lax.while_loop(lambda x: x.sum() < 2000, lambda x: f(x), a),
        lambda a: a * 8,
    ),
    Transform(
        "cond",
        "cond",
        double,
        lambda f, a: lax.cond(jnp.sum(a) > 3, lambda x: f(x), lambda x: x, a),
        lambda a: a * 2,
    ),
    Transform(
        "cond-not-taken",
        "cond, not taken",
        double,
        lambda f, a: lax.cond(jnp.sum(a) < 3, lambda x: f(x), lambda x: x, a),
        lambda a: a,
    ),
    Transform(
        "map",
        "lax.map",
        psum,
        lambda f, a: lax.map(lambda x: f(x), jnp.stack([a, a * 10])),
        lambda a: np.stack([to_all(a.sum(0)), to_all(a.sum(0) * 10)]),
    ),
    Transform(
        "jit-out-none",
        "jit, with out_axes=None",
        psum,
        lambda f, a: jax.jit(lambda x: f(x) + 1)(a),
        lambda a: a.sum(0) + 1,
        out_axes=None,
        taken=False,
    ),
    Transform(
        "scan-out-none",
        "scan, with out_axes=None",
        psum,
        lambda f, a: lax.scan(lambda s, _: (s + f(a), None), a[0] * 0, None, length=2)[0],
        lambda a: a.sum(0) * 2,
        out_axes=None,
        taken=False,
    ),
)


@family(
    "silences.of-map.{transform}",
    transform=TRANSFORMS,
    claim="pmap-silence.transforms-of-the-map",
    title="A mapped function under {transform.text}.",
    fact="silences.of-map.{transform}",
    needs=devices(COUNT),
    left_out="multi_controller.map tests several processes",
    expect=lambda transform: transform.columns(),
)
def transformed(impl: Implementation, cluster: Cluster, transform: Transform) -> None:
    """A map, transformed."""
    function = impl.map(transform.body(), out_axes=transform.out_axes)
    cluster.twice(lambda a: transform.apply(function, a), cluster.rows(*transform.shape))
