"""Shapes that a body keeps while it is traced, `jax.eval_shape` or `jax.typeof`, used outside.

Under legacy pmap they are the plain shapes of one device's part, as a cache or a template of a
checkpoint needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from conformance.sections.silences.answers import CALL, ONE_PROCESS_ALONE, WIDTH, doubled, numbers
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, returns
from conformance.spec.family import table
from conformance.worker.protocols import Cluster, Implementation

USE = "the use outside"

DEFAULTS = Defaults(
    claim="pmap-silence.shapes-kept-from-a-body", needs=devices(2), left_out=ONE_PROCESS_ALONE
)


def of_eval_shape(x: Any) -> Any:
    return jax.eval_shape(lambda x: x * 2, x)


def plain(x: Any) -> Any:
    """The shape and the dtype alone."""
    shape = of_eval_shape(x)
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype)


def lowered(shape: Any) -> Any:
    return jax.jit(lambda x: x * 3).lower(shape).compile()(numbers(WIDTH))


def exported(shape: Any) -> Any:
    return export.export(jax.jit(lambda x: x * 3))(shape).call(numbers(WIDTH))


def equal(kept: Any, same: Any, other: Any) -> Any:
    """Compared with an equal shape and with another one; and looked up in a dictionary."""
    return np.array([kept == same, kept == other, kept in {same: 1}])


def like_struct(shape: Any) -> Any:
    one, other = (jax.ShapeDtypeStruct((n,), np.float32) for n in (WIDTH, WIDTH + 1))
    return equal(shape, one, other)


def like_typeof(shape: Any) -> Any:
    return equal(shape, *(jax.typeof(jnp.ones(n)) for n in (WIDTH, WIDTH + 1)))


EQUAL, TRIPLED = np.array([True, False, True]), numbers(WIDTH) * 3
TEXTS = {
    like_struct: "equals a ShapeDtypeStruct of its shape and dtype",
    like_typeof: "equals `jax.typeof` of an array of its shape and dtype",
    lowered: "can be passed to `jax.jit(f).lower`",
    exported: "can be passed to `jax.export.export(jax.jit(f))`",
}


@dataclass(frozen=True, slots=True)
class Use:
    """What the body keeps, and what is done with it outside."""

    key: str
    text: str  # what is kept
    keep: Callable[[Any], Any]
    use: Callable[[Any], Any]
    fixes: str | None = None

    def columns(self) -> Columns:
        """The map's results, and what the shape of one device's part gives."""
        given = EQUAL if self.use in (like_struct, like_typeof) else TRIPLED
        right = returns(lambda _: given, text=f"{given.tolist()}")
        return everywhere(every(in_steps(returns(doubled), CALL), in_steps(right, USE)))


STRUCT, TYPE = "the result of `jax.eval_shape`", "`jax.typeof(x)`"
ALONE = "a new ShapeDtypeStruct of the `shape` and `dtype` of what `jax.eval_shape` returns"
USES: Mapping[str, Use] = table(
    Use("struct-equal", STRUCT, of_eval_shape, like_struct),
    Use("struct-lowered", STRUCT, of_eval_shape, lowered),
    Use("struct-exported", STRUCT, of_eval_shape, exported),
    Use("type-equal", TYPE, jax.typeof, like_typeof),
    Use("type-lowered", TYPE, jax.typeof, lowered),
    Use("plain-equal", ALONE, plain, like_struct, "silences.kept-shapes.struct-equal"),
    Use("plain-lowered", ALONE, plain, lowered, "silences.kept-shapes.struct-lowered"),
    Use("plain-exported", ALONE, plain, exported, "silences.kept-shapes.struct-exported"),
)


@DEFAULTS.family(
    "silences.kept-shapes.{use}",
    use=USES,
    title=lambda use: f"Kept in a mapped body, {use.text} {TEXTS[use.use]} outside.",
    fact="silences.kept-shapes.{use}",
    expect=lambda use: use.columns(),
)
def kept(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A map whose body keeps the shape of its argument; then a use of what it kept first."""
    shapes: list[Any] = []

    def body(x: Any) -> Any:
        shapes.append(use.keep(x))
        return x * 2

    cluster.step(CALL, impl.map(body), impl.given(cluster.rows(WIDTH)))
    cluster.step(USE, lambda: use.use(shapes[0]))
