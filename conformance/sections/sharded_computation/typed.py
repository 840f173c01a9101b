"""The page on parallel programming: shardings are a part of an array's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.sharded_computation import COUNT, P
from conformance.sections.sharded_computation.typed_programs import (
    COLUMN,
    LEFT,
    LINE,
    ONE_TABLE,
    RIGHT,
    ROW,
    SQUARE,
    Axes,
    Program,
    Say,
    X,
    as_numpy,
    mesh_of,
    numbers,
    put,
    run_on_mesh,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation


def _reshard_in_jit(x: Any) -> Any:
    axes = (jax.sharding.AxisType.Explicit,)
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((8,), ("A",), axes)):
        return jax.reshard(x, P("A", None)) * 2


def _saying(say: Say) -> Callable[[Any], Any]:
    def same(x: Any) -> Any:
        say(jax.typeof(x))
        return x

    return same


def _concrete(say: Say) -> Callable[[Any], Any]:
    def same(x: Any) -> Any:
        say(list(x.sharding.spec))
        say(jax.typeof(x))
        return x

    return same


def _explicitly(say: Say) -> Any:
    inner = jax.sharding.explicit_axes(lambda y: _saying(say)(y * 2))
    outer = jax.jit(lambda x: inner(x + 1, in_sharding=P("X", "Y")) + 1)
    return outer(put(SQUARE, "X", "Y"))


def _kept(axes: Axes) -> Any:
    return jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, P(*axes)))


def _added() -> Callable[..., Any]:
    return lambda x, y: x + y


SPEC = "device-put-bare-spec"
NOTHING = "made-out-of-nothing"
GO_THROUGH = "shardings-propagate"
ON_BOTH, ON_X, NOWHERE = ("X", "Y"), ("X", None), (None, None)

PROGRAMS: Mapping[str, Program] = table(
    Program("put", SPEC, "device_put(x, P('Y', 'X'))", lambda _: put(X, "Y", "X"), X, ("Y", "X")),
    Program(
        "reshard",
        SPEC,
        "jax.reshard(x, P('Y', 'X'))",
        lambda _: jax.reshard(put(X, "X", "Y"), P("Y", "X")),
        X,
        ("Y", "X"),
    ),
    Program(
        "unmentioned",
        "unmentioned-axis-replicates",
        "device_put(x, P('X', None))",
        lambda _: put(put(X, "X", "Y"), "X", None),
        X,
        ON_X,
    ),
    Program(
        "trailing-none",
        "unmentioned-axis-replicates",
        "device_put(x, P('X'))",
        lambda _: put(put(X, "X", "Y"), "X"),
        X,
        ON_X,
    ),
    Program(
        "tuple",
        "axes-in-a-tuple",
        "device_put(x, P(('X', 'Y')))",
        lambda _: put(put(X, "X", "Y"), ("X", "Y")),
        X,
        (("X", "Y"), None),
    ),
    Program(
        "other-mesh",
        "arrays-of-several-meshes",
        "device_put(x, NamedSharding(other_mesh, P('A', None)))",
        lambda _: jax.device_put(
            put(X, "X", "Y"), jax.sharding.NamedSharding(mesh_of(LINE), P("A", None))
        ),
        X,
        ("A", None),
        sizes=tuple(LINE.items()),
    ),
    Program(
        "under-jit",
        "typeof-under-jit",
        "jax.typeof(x) under jit",
        lambda say: jax.jit(_saying(say))(put(X, "X", "Y")),
        X,
        ON_BOTH,
        inside=("float32[8@X,4@Y]",),
    ),
    Program(
        "elementwise",
        GO_THROUGH,
        "jnp.square(x)",
        lambda _: jnp.square(put(X, "X", "Y")),
        np.square(X),
        ON_BOTH,
    ),
    Program(
        "transpose",
        GO_THROUGH,
        "jnp.square(x).T",
        lambda _: jnp.square(put(X, "X", "Y")).T,
        np.square(X).T,
        ("Y", "X"),
    ),
    Program(
        "outer",
        GO_THROUGH,
        "column + row",
        lambda _: put(COLUMN, "X", None) + put(ROW, None, "Y"),
        COLUMN + ROW,
        ON_BOTH,
    ),
    Program(
        "sum",
        "reduction-communicates",
        "x.sum(0)",
        lambda _: put(X, "X", "Y").sum(0),
        X.sum(0),
        ("Y",),
    ),
    Program(
        "zeros",
        NOTHING,
        "jnp.zeros((8, 4), out_sharding=P('X', 'Y'))",
        lambda _: jnp.zeros((8, 4), out_sharding=P("X", "Y")),
        np.zeros((8, 4), np.float32),
        ON_BOTH,
    ),
    Program(
        "arange",
        NOTHING,
        "jnp.arange(8, out_sharding=P('X'))",
        lambda _: jnp.arange(8, out_sharding=P("X")),
        np.arange(8, dtype=np.int32),
        ("X",),
    ),
    Program(
        "random",
        NOTHING,
        "jax.random.normal(key, (8, 4), out_sharding=P('X', 'Y')), minus the same "
        "without out_sharding",
        lambda _: (
            jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P("X", "Y"))
            - put(jax.random.normal(jax.random.key(0), (8, 4)), "X", "Y")
        ),
        np.zeros((8, 4), np.float32),
        ON_BOTH,
    ),
    Program(
        "out-sharding",
        "fix-out-sharding",
        "jnp.dot(x, y, out_sharding=P('X', None))",
        lambda _: jnp.dot(put(LEFT, None, "X"), put(RIGHT, "X", None), out_sharding=P("X", None)),
        LEFT @ RIGHT,
        ON_X,
    ),
    Program(
        "one-sided",
        "contraction-one-sided",
        "jnp.dot(x, y), where only y is sharded",
        lambda _: jnp.dot(put(LEFT), put(RIGHT, "X", None)),
        LEFT @ RIGHT,
        NOWHERE,
    ),
    Program(
        "auto-axes-call",
        "fix-auto-axes",
        "auto_axes(add)(x, y, out_sharding=P('X', None))",
        lambda _: jax.sharding.auto_axes(_added())(
            put(SQUARE, "X", None), put(SQUARE, None, "X"), out_sharding=P("X", None)
        ),
        SQUARE * 2,
        ON_X,
    ),
    Program(
        "auto-axes-definition",
        "fix-auto-axes",
        "auto_axes(out_sharding=P('X', None))(add)(x, y)",
        lambda _: jax.sharding.auto_axes(out_sharding=P("X", None))(_added())(
            put(SQUARE, "X", None), put(SQUARE, None, "X")
        ),
        SQUARE * 2,
        ON_X,
    ),
    Program(
        "concrete",
        "concrete-and-typed",
        "x.sharding and jax.typeof(x) under auto_axes",
        lambda say: jax.sharding.auto_axes(_concrete(say))(
            put(numbers(8), "X"), out_sharding=P("X")
        ),
        numbers(8),
        ("X",),
        inside=("['X']", "float32[8]"),
    ),
    Program(
        "auto-mesh",
        "auto-mesh",
        "with_sharding_constraint(jnp.dot(x, y), P('X', None)) on Auto axes",
        lambda _: jax.jit(
            lambda x, y: jax.lax.with_sharding_constraint(jnp.dot(x, y), P("X", None))
        )(put(LEFT, None, "X"), put(RIGHT, "X", None)),
        LEFT @ RIGHT,
        ON_X,
        typed=NOWHERE,
        explicit=False,
    ),
    Program(
        "constraint-auto",
        "constraint-hints",
        "with_sharding_constraint(x, P('Y', 'X')) of P('X', 'Y') on Auto axes",
        lambda _: _kept(("Y", "X"))(put(X, "X", "Y")),
        X * 2,
        ("Y", "X"),
        typed=NOWHERE,
        explicit=False,
    ),
    Program(
        "constraint-explicit",
        "constraint-hints",
        "with_sharding_constraint(x, P('X', 'Y')) of P('X', 'Y')",
        lambda _: _kept(("X", "Y"))(put(X, "X", "Y")),
        X * 2,
        ON_BOTH,
    ),
    Program(
        "explicit-axes",
        "explicit-axes",
        "explicit_axes(f)(x, in_sharding=P('X', 'Y')) on Auto axes",
        _explicitly,
        (SQUARE + 1) * 2 + 1,
        ON_BOTH,
        typed=NOWHERE,
        inside=("float32[4@X,4@Y]",),
        explicit=False,
    ),
    Program(
        "abstract-mesh",
        "abstract-mesh-under-jit",
        "jax.reshard(x, P('A', None)) under another abstract mesh, in jit",
        lambda _: jax.jit(lambda x: _reshard_in_jit(x))(put(X, "X", "Y")),
        X * 2,
        ("A", None),
        sizes=tuple(LINE.items()),
    ),
)


@family(
    "sharded_computation.types.{program}",
    program=PROGRAMS,
    claim=lambda program: f"parallel.{program.claim}",
    title="`{program.text}`: values, type and sharding.",
    needs=devices(COUNT),
    left_out=ONE_TABLE,
    expect=lambda program: of_jax(as_numpy(program)),
)
def typed(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """A program of the page, on its mesh."""
    run_on_mesh(cluster, program)
