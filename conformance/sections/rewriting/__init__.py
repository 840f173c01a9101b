"""Parts that the recipes from `pmap` to `jit(shard_map)` share: the document's mesh and specs.

Where the document's text fails as written, the next form changes only what it must, so that each
fault is visible by itself: first the mesh, then the specs, then the body's rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.spec.expectation import along, sharded
from conformance.spec.family import table
from conformance.worker.bodies import Body
from conformance.worker.protocols import Implementation

WIDTH = 128
COUNT = 8  # devices of the document's mesh

REPLICATED = sharded("replicated", along())
OVER_I = sharded("sharded over 'i'", along("i"))

# shard_map's error for an output that is declared replicated and cannot be inferred so.
NOT_INFERRED = (
    r"out_specs which require replication which can't be statically inferred.*"
    r"(P|PartitionSpec)\(\) which implies that the corresponding output value is replicated across "
    r"mesh axis 'i'"
)

make_mesh: Any = jax.make_mesh  # its parameters' names differ between versions
P = jax.sharding.PartitionSpec
ROWS = P("i")


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write the document's programs: how its mesh is made, and what it calls a spec.

    `mesh` takes the sizes and the names of the axes. `fact` is said where the form itself is what
    is found, whatever is mapped over its mesh.
    """

    key: str
    text: str
    mesh: Callable[[tuple[int, ...], tuple[str, ...]], Any]
    spec: Callable[..., Any] = P
    fact: str = ""


AS_WRITTEN = Form(
    "as-written",
    "With the mesh as written",
    mesh=lambda sizes, names: make_mesh(shape=sizes, axis_names=names),
    spec=lambda *axes: jax.P(*axes),
    fact="rewriting.make-mesh.as-written",
)
DEFAULT_AXES = Form(
    "default-axes",
    "With the mesh's sizes passed by position, and so with make_mesh's default axis types",
    mesh=lambda sizes, names: make_mesh(sizes, names),
    fact="rewriting.make-mesh.default-axes",
)
AUTO_AXES = Form(
    "auto-axes",
    "With a mesh of Auto axes",
    mesh=lambda sizes, names: make_mesh(
        sizes, names, axis_types=(jax.sharding.AxisType.Auto,) * len(sizes)
    ),
)

FORMS: Mapping[str, Form] = table(AS_WRITTEN, DEFAULT_AXES, AUTO_AXES)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A form of the document's program, and what was `changed` in it beyond its mesh.

    `body` makes a new body each time, as JAX's caches go by function object. `fact` is said where
    it is neither the form's nor the clause's own.
    """

    key: str
    form: Form
    body: Callable[[], Body]
    changed: str = ""
    check_vma: bool = True
    fact: str = ""


def found(recipe: Recipe) -> str:
    """The fact of a recipe's clause; the clause's own where it is empty."""
    return recipe.fact or recipe.form.fact


def shard_mapped(
    body: Body,
    mesh: jax.sharding.Mesh,
    *,
    in_specs: Any = ROWS,
    out_specs: Any = ROWS,
    **options: Any,
) -> Any:
    """`jax.jit(jax.shard_map(...))`, which takes the place of `jax.pmap`."""
    return jax.jit(
        jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)
    )


LABEL = "jit(shard_map)"


def program(impl: Implementation, build: Callable[[], Any]) -> Any:
    """Build a rewritten function as a user's program does, and record errors of building it too.

    The built function is adopted. If it cannot be built, the builder is adopted, so that the
    failing call counts as the mapped function's.
    """
    built: list[Any] = []

    def run(*args: Any) -> Any:
        if not built:
            try:
                built.append(impl.adopt(build(), LABEL))
            except Exception:
                return impl.adopt(build, LABEL)()
        return built[0](*args)

    return run


def placed_on(mesh: jax.sharding.Mesh, rows: Any) -> Any:
    """This process's rows, placed on the mesh over 'i' before they are passed."""
    return jax.make_array_from_process_local_data(jax.sharding.NamedSharding(mesh, ROWS), rows)


def words(row: Any) -> str:
    """A row's key, as a title says it."""
    key: str = row.key
    return key.replace("-", " ")
