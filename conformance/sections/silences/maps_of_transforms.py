"""A map of a function that is transformed: `jax.pmap(jax.vmap(f))` and the like.

What the body computes is a device's own affair, so that it must be what NumPy computes of its row.
Where a collective is transformed too, it still is over the devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from conformance.sections.silences.checking import CHECKS, Check, asked
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, twice
from conformance.spec.family import family, table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

lax = jax.lax
Rows = NDArray[Any]

COUNT = 8  # devices
WIDTH = 3  # of a row
NEXT = [(k, (k + 1) % COUNT) for k in range(COUNT)]


@dataclass(frozen=True, slots=True)
class Transform:
    """A `body` of a row, and what NumPy makes of all rows."""

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Callable[[Rows], Any]


# x squared, with the custom derivative ten, and with the custom derivative a hundred times x.
squared: Any = jax.custom_jvp(lambda x: x**2)
squared.defjvp(lambda primals, tangents: (squared(*primals), 10 * tangents[0]))
squared_too: Any = jax.custom_vjp(lambda x: x**2)
squared_too.defvjp(lambda x: (x**2, x), lambda x, g: (100 * g * x,))


def to_all(value: Rows) -> Rows:
    """The same on every device."""
    return np.broadcast_to(value, (COUNT, *value.shape))


def diagonals(rows: Rows) -> Rows:
    """A matrix for each row, with the row as its diagonal."""
    result: Rows = rows[:, :, None] * np.eye(WIDTH, dtype=rows.dtype)
    return result


def doubled_below(rows: Rows) -> Rows:
    """Each row doubled until it sums to fifty."""
    result: Rows = rows
    while (result.sum(1) < 50).any():
        result = np.where(result.sum(1, keepdims=True) < 50, result * 2, result)
    return result


def running(rows: Rows) -> tuple[Rows, Rows]:
    """Return the running sum of each row from zero, with the intermediate products."""
    sums = np.concatenate([np.zeros_like(rows[:, :1]), rows.cumsum(1)], 1)
    return sums[:, -1], sums[:, :-1] * rows


TRANSFORMS: Mapping[str, Transform] = table(
    Transform("vmap", "vmap", jax.vmap(lambda y: y * 2), lambda a: a * 2),
    Transform(
        "vmap-psum",
        "vmap of a psum over the devices",
        jax.vmap(lambda y: lax.psum(y, "i")),
        lambda a: to_all(a.sum(0)),
    ),
    Transform(
        "vmap-all-gather",
        "vmap of an all_gather",
        jax.vmap(lambda y: lax.all_gather(y, "i")),
        lambda a: to_all(a.T),
    ),
    Transform(
        "vmap-ppermute",
        "vmap of a ppermute",
        jax.vmap(lambda y: lax.ppermute(y, "i", NEXT)),
        lambda a: np.roll(a, 1, 0),
    ),
    Transform(
        "vmap-axis-index",
        "vmap of axis_index",
        jax.vmap(lambda y: y + lax.axis_index("i")),
        lambda a: a + np.arange(COUNT, dtype=np.float32)[:, None],
    ),
    Transform(
        "vmap-named",
        "vmap with an axis name, and a pmean over it",
        jax.vmap(lambda y: y - lax.pmean(y, "v"), axis_name="v"),
        lambda a: a - a.mean(1, keepdims=True),
    ),
    Transform(
        "vmap-both-names",
        "vmap with an axis name, and a psum over it and the mapped axis",
        jax.vmap(lambda y: lax.psum(y, ("i", "v")), axis_name="v"),
        lambda a: np.full_like(a, a.sum()),
    ),
    Transform(
        "grad",
        "grad",
        jax.grad(lambda y: (y**3).sum()),
        lambda a: 3 * a**2,
    ),
    Transform(
        "value-and-grad",
        "value_and_grad",
        jax.value_and_grad(lambda y: (y**3).sum()),
        lambda a: ((a**3).sum(1), 3 * a**2),
    ),
    Transform("jit", "jit", lambda x: jax.jit(lambda y: y * 2)(x), lambda a: a * 2),
    Transform(
        "jit-psum",
        "jit of a psum over the devices",
        lambda x: jax.jit(lambda y: lax.psum(y, "i"))(x),
        lambda a: to_all(a.sum(0)),
    ),
    Transform(
        "checkpoint", "checkpoint", lambda x: jax.checkpoint(lambda y: y**2)(x), lambda a: a**2
    ),
    Transform(
        "grad-checkpoint",
        "grad of checkpoint",
        jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(y) * 0 + y**2)(x).sum()),
        lambda a: 2 * a,
    ),
    Transform(
        "scan",
        "scan",
        lambda x: lax.scan(lambda s, y: (s + y, s * y), x[0] * 0, x),
        running,
    ),
    Transform(
        "grad-scan",
        "grad of scan",
        jax.grad(lambda x: lax.scan(lambda s, y: (s * y, None), x[0] ** 0, x)[0]),
        lambda a: a.prod(1, keepdims=True) / a,
    ),
    Transform(
        "while",
        "while_loop",
        lambda x: lax.while_loop(lambda y: y.sum() < 50, lambda y: y * 2, x),
        doubled_below,
    ),
    Transform(
        "cond",
        "cond",
        lambda x: lax.cond(x.sum() > 20, lambda y: y, lambda y: -y, x),
        lambda a: np.where(a.sum(1, keepdims=True) > 20, a, -a),
    ),
    Transform(
        "grad-cond",
        "grad of cond",
        jax.grad(lambda x: lax.cond(x.sum() > 20, lambda y: (y**2).sum(), lambda y: y.sum(), x)),
        lambda a: np.where(a.sum(1, keepdims=True) > 20, 2 * a, np.ones_like(a)),
    ),
    Transform(
        "custom-jvp",
        "custom_jvp and its gradient",
        lambda x: (squared(x), jax.grad(lambda y: squared(y).sum())(x)),
        lambda a: (a**2, np.full_like(a, 10)),
    ),
    Transform(
        "custom-vjp",
        "custom_vjp and its gradient",
        lambda x: (squared_too(x), jax.grad(lambda y: squared_too(y).sum())(x)),
        lambda a: (a**2, 100 * a),
    ),
    Transform("jacfwd", "jacfwd", jax.jacfwd(lambda y: y**2), lambda a: diagonals(2 * a)),
    Transform("jacrev", "jacrev", jax.jacrev(lambda y: y**2), lambda a: diagonals(2 * a)),
    Transform(
        "hessian", "hessian", jax.hessian(lambda y: (y**3).sum()), lambda a: diagonals(6 * a)
    ),
    Transform(
        "jvp",
        "jvp along the argument itself",
        lambda x: jax.jvp(lambda y: y**2, (x,), (x,)),
        lambda a: (a**2, 2 * a**2),
    ),
    Transform(
        "jvp-of-ones",
        "jvp along a constant",
        lambda x: jax.jvp(lambda y: y**2, (x,), (jnp.ones(WIDTH),))[1],
        lambda a: 2 * a,
    ),
    Transform(
        "vjp",
        "vjp with the result as cotangent",
        lambda x: jax.vjp(lambda y: y**2, x)[1](x)[0],
        lambda a: 2 * a**2,
    ),
    Transform(
        "vjp-of-ones",
        "vjp with a constant cotangent",
        lambda x: jax.vjp(lambda y: y**2, x)[1](jnp.ones(WIDTH))[0],
        lambda a: 2 * a,
    ),
    Transform(
        "linearize",
        "linearize, along the argument itself",
        lambda x: jax.linearize(lambda y: y**2, x)[1](x),
        lambda a: 2 * a**2,
    ),
    Transform(
        "linearize-of-ones",
        "linearize, along a constant",
        lambda x: jax.linearize(lambda y: y**2, x)[1](jnp.ones(WIDTH)),
        lambda a: 2 * a,
    ),
    Transform(
        "linear-transpose",
        "linear_transpose",
        lambda x: jax.linear_transpose(lambda y: y * 3, x)(x)[0],
        lambda a: 3 * a,
    ),
)


def modelled(transform: Transform) -> Callable[[Place], Any]:
    """Return the model of each device's result for its row."""

    def model(place: Place) -> Any:
        return transform.model(place.all_rows(WIDTH))

    return model


@family(
    "silences.map-of.{transform}.{check}",
    transform=TRANSFORMS,
    check=CHECKS,
    claim="pmap-silence.maps-of-transforms",
    title="A mapped function of {transform.text}{check.text}.",
    fact="silences.map-of.{transform}",
    needs=devices(COUNT),
    left_out="the body uses its own device's row only",
    expect=lambda transform, check: asked(
        everywhere(
            twice(returns(modelled(transform), text=f"what NumPy gives for {transform.text}"))
        ),
        check,
    ),
)
def of_transform(
    impl: Implementation, cluster: Cluster, transform: Transform, check: Check
) -> None:
    """A transformed function, mapped."""
    function = impl.map(lambda x: transform.body(x), check_vma=check.on)
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))
