"""Nested maps: what does not lead out of nested pmap's error, and wrong forms of its remedies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from conformance.sections.errors import INNER, OUTER, grid
from conformance.sections.errors.nested_maps import (
    NESTED,
    grid_summed,
    mesh_of_two_axes,
    nested,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_shard_map
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP
from conformance.spec.releases import by_release
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.nested-pmap-variants",
    needs=devices(OUTER * INNER),
    left_out="the result does not depend on the number of processes",
)


def auto_mesh(cluster: Cluster) -> jax.sharding.Mesh:
    """The mesh of both axes from make_mesh, each of them Auto."""
    return jax.make_mesh((OUTER, INNER), ("i", "j"), axis_types=(AxisType.Auto,) * 2)


# --- Forms that do not help


@dataclass(frozen=True, slots=True)
class Context:
    """A context in which the nested pmaps are called."""

    key: str
    text: str
    enter: Callable[[Cluster], AbstractContextManager[Any]]


CONTEXTS: Mapping[str, Context] = table(
    Context(
        "set-mesh",
        "jax.set_mesh of an Auto mesh with both axis names",
        lambda cluster: jax.set_mesh(auto_mesh(cluster)),
    ),
    Context(
        "set-mesh-explicit",
        "jax.set_mesh of an Explicit mesh with both axis names",
        lambda cluster: jax.set_mesh(
            jax.make_mesh((OUTER, INNER), ("i", "j"), axis_types=(AxisType.Explicit,) * 2)
        ),
    ),
    Context(
        "with-mesh",
        "`with mesh:` of a mesh with both axis names",
        lambda cluster: mesh_of_two_axes(cluster),
    ),
)


@DEFAULTS.family(
    "errors.context-mesh.nested-under.{context}",
    context=CONTEXTS,
    title="A pmap inside a pmap under {context.text}.",
    fact=NESTED,
    cause="nested-pmap-refused",
    expect=lambda context: {
        **nested(grid_summed),
        LEGACY_PMAP: twice(returns(grid_summed)),
    },
)
def nested_under(impl: Implementation, cluster: Cluster, context: Context) -> None:
    """A pmap inside a pmap with a psum over both axes, called in the context."""
    inner = impl.map(lambda x: jax.lax.psum(x, ("i", "j")), "j")
    outer = impl.map(inner, "i")
    with context.enter(cluster):
        cluster.twice(outer, grid(cluster))


# --- Wrong forms of the remedies


@described("the sum over the whole grid")
def total(place: Place) -> Any:
    return grid(place).sum((0, 1))[None, None]


def summed(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A shard_map in a shard_map that sums over both axes, with these arguments of each."""

    def body(x: Any) -> Any:
        return jax.shard_map(
            lambda y: jax.lax.psum(y, ("i", "j")),
            in_specs=P(None, "j"),
            out_specs=P(),
            **inner,
        )(x)

    made: Callable[[Any], Any] = jax.shard_map(body, in_specs=P("i"), out_specs=P(), **outer)
    return made


UNEVEN = r"axis sizes that are not evenly divisible by the corresponding mesh axis sizes"


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the nested shard_map; `error` is what it raises, None where it is right."""

    key: str
    text: str
    make: Callable[[jax.sharding.Mesh], Callable[[Any], Any]]
    error: Expectation | None = None

    def expected(self) -> Expectation:
        """The error, or the sum."""
        return twice(returns(total)) if self.error is None else self.error


def wrong(message: str) -> Expectation:
    """A ValueError in both calls."""
    return twice(raises(ValueError, message, otherwise=total))


FORMS: Mapping[str, Form] = table(
    Form(
        "both-named",
        "each with its `axis_names`, under jit",
        lambda mesh: jax.jit(summed({"axis_names": {"j"}}, {"axis_names": {"i"}, "mesh": mesh})),
    ),
    Form(
        "inner-unnamed",
        "the inner one without `axis_names`",
        lambda mesh: jax.jit(summed({}, {"axis_names": {"i"}, "mesh": mesh})),
    ),
    Form(
        "outer-unnamed",
        "the outer one without `axis_names`",
        lambda mesh: jax.jit(summed({"axis_names": {"j"}}, {"mesh": mesh})),
        by_release(
            "0.12.0",
            before=wrong("^Cannot lower jaxpr with verifier errors"),
            since=wrong(r"^shard_map in_specs argument must refer to an axis marked as manual"),
        ),
    ),
    Form(
        "inner-mesh",
        "the inner one with `mesh=`",
        lambda mesh: jax.jit(
            summed({"axis_names": {"j"}, "mesh": mesh}, {"axis_names": {"i"}, "mesh": mesh})
        ),
        wrong(r"^The context mesh AbstractMesh\(.*\) should match the mesh passed to shard_map"),
    ),
    Form(
        "without-jit",
        "called without jit",
        lambda mesh: summed({"axis_names": {"j"}}, {"axis_names": {"i"}, "mesh": mesh}),
        wrong(UNEVEN),
    ),
)


@DEFAULTS.family(
    "errors.context-mesh.nested-shard-map.{form}",
    form=FORMS,
    title="A shard_map inside a shard_map, {form.text}.",
    fact="errors.context-mesh.nested-shard-map",
    expect=lambda form: of_shard_map(form.expected(), "the remedy replaces pmap by shard_map"),
)
def nested_shard_map(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """A psum over both axes of a shard_map in a shard_map."""
    function = form.make(mesh_of_two_axes(cluster))
    cluster.twice(impl.adopt(function, "jit(shard_map)"), np.asarray(grid(cluster)))


# --- smap in smap


@dataclass(frozen=True, slots=True)
class Axes:
    """The axis of the grid that each smap maps; `error` is raised for a wrong one."""

    key: str
    text: str
    outer: int
    inner: int
    error: Expectation | None = None


SMAPS: Mapping[str, Axes] = table(
    Axes("own-axes", "the outer one with in_axes=0, the inner one with in_axes=1", 0, 1),
    Axes(
        "both-0",
        "both with in_axes=0, so that the inner one splits the part that the outer one gives it",
        0,
        0,
        twice(raises(ValueError, UNEVEN, otherwise=total)),
    ),
)


@DEFAULTS.family(
    "errors.context-mesh.nested-smap.{axes}",
    axes=SMAPS,
    title="A smap inside a smap, {axes.text}.",
    fact="errors.context-mesh.nested-smap",
    expect=lambda axes: of_shard_map(
        axes.error or twice(returns(total)), "the remedy replaces pmap by smap"
    ),
)
def nested_smap(impl: Implementation, cluster: Cluster, axes: Axes) -> None:
    """A psum over both axes of a smap in a smap, each of whose out_axes is None."""
    inner = jax.smap(
        lambda x: jax.lax.psum(x, ("i", "j")), in_axes=axes.inner, out_axes=None, axis_name="j"
    )
    function = jax.smap(inner, in_axes=axes.outer, out_axes=None, axis_name="i")
    with jax.set_mesh(mesh_of_two_axes(cluster)):
        cluster.twice(impl.adopt(jax.jit(function), "smap"), np.asarray(grid(cluster)))
