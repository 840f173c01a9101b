"""The compiled stage of a lowered mapped function: equal to it in one process, not in several.

A pmap's arguments and results are process-local. The wrapper of new pmap converts them to global
arrays and back; its `lower` returns the stage below that conversion, so that the caller has to
convert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.errors import WITHOUT, needed
from conformance.sections.errors.staged import Staged
from conformance.spec.clause import clause, processes
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import not_applicable, raises, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import APART, ONE_AND_SEVERAL, ONE_PROCESS, SEVERAL_PROCESSES
from conformance.worker.protocols import Cluster, Implementation, Mapped

ONE_PROCESS_CLAIM = "pmap-silence.lowered-one-process"
TO_BEGIN_WITH = "shard_map's arguments are global to begin with"


@dataclass(frozen=True, slots=True)
class Program:
    """A map of this process's rows, by what a conversion could get wrong in it."""

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Model
    out_axes: int | None = 0

    def map(self, impl: Implementation) -> Mapped:
        """Return the mapped program, of a new function object, because caches are keyed by
        function.
        """
        return impl.map(lambda x: self.body(x), out_axes=self.out_axes)

    @property
    def out_spec(self) -> Any:
        """The spec of the global result."""
        if self.out_axes is None:
            return jax.sharding.PartitionSpec()
        return jax.sharding.PartitionSpec(*[None] * self.out_axes, "i")


PROGRAMS: Mapping[str, Program] = table(
    Program(
        "map", "a mapped function without options", lambda x: x * 2, lambda place: place.rows(3) * 2
    ),
    Program(
        "psum",
        "a mapped function with a psum over all devices",
        lambda x: x + jax.lax.psum(x, "i"),
        lambda place: place.rows(3) + place.all_rows(3).sum(0),
    ),
    Program(
        "out-axis-1",
        "a mapped function with `out_axes=1`",
        lambda x: x * 2,
        lambda place: place.rows(3).T * 2,
        out_axes=1,
    ),
    Program(
        "out-axis-none",
        "a mapped function with `out_axes=None`",
        lambda x: jax.lax.psum(x, "i"),
        lambda place: place.all_rows(3).sum(0),
        out_axes=None,
    ),
    Program(
        "axis-index",
        "a mapped function that calls `axis_index`",
        lambda x: x * 0 + jax.lax.axis_index("i"),
        lambda place: place.mine(
            np.broadcast_to(
                np.arange(place.topology.devices, dtype=np.float32)[:, None],
                (place.topology.devices, 3),
            )
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Lowering:
    """The arguments for which a mapped function is lowered: process-local or global arrays."""

    key: str
    text: str
    converts: bool


LOWERINGS: Mapping[str, Lowering] = table(
    Lowering("local", "process-local", converts=False),
    Lowering("global", "global", converts=True),
)

THE_MAP = "the map itself"


def right(program: Program) -> Expectation:
    """Expect NumPy's result of the program."""
    return returns(program.model, text="the map's result")


def as_the_map(program: Program) -> Expectation:
    """The map and its compiled stage return the same."""
    same = right(program)
    return steps(the_map_itself=same, first_call=same, second_call=same)


def bare(program: Program) -> Expectation:
    """The map is right; its compiled stage is for the global array, and refuses a process's own.

    In the document's words it may misbehave: this is how.
    """
    message = (
        r"Argument types differ from the types for which this computation was compiled\..*"
        r"compiled with float32\[\d+,3\] and called with float32\[2,3\]"
    )
    stage = raises(TypeError, message, otherwise=program.model)
    return steps(the_map_itself=right(program), first_call=stage, second_call=stage)


def converted_as_the_map(program: Program) -> Expectation:
    """Expect an error or the right result without the conversions, and the right result
    with them.
    """
    same = right(program)
    bare = needed(program.model)
    return steps(without_the_fix=bare, the_map_itself=same, first_call=same, second_call=same)


@family(
    "errors.lowered.one-process-{program}",
    program=PROGRAMS,
    claim=ONE_PROCESS_CLAIM,
    fact="errors.lowered.one-process",
    title="The compiled stage is called in one process: {program.text}.",
    topologies=ONE_PROCESS,
    left_out=APART,
    expect=lambda program: everywhere(as_the_map(program)),
)
@family(
    "errors.lowered.several-processes-{program}",
    program=PROGRAMS,
    claim="migrate-pmap.lowered-multi-process",
    fact="errors.lowered.several-processes",
    cause="compiled-stage-is-global",
    title=(
        "The compiled stage is called with process-local arguments; new pmap's expects global "
        "arrays and refuses them: {program.text}."
    ),
    needs=processes(2),
    topologies=SEVERAL_PROCESSES,
    expect={LEGACY_PMAP: as_the_map, NEW_PMAP: bare, SHARD_MAP: as_the_map},
)
def staged(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Call the mapped function, then the compiled stage of another such function with the same
    arguments.
    """
    rows = impl.given(cluster.rows(3))
    cluster.step(THE_MAP, program.map(impl), rows)
    cluster.twice(Staged(impl, program.map(impl), rows), rows)


@clause(
    "errors.lowered.for-shapes",
    claim=ONE_PROCESS_CLAIM,
    title="A mapped function is lowered for `jax.ShapeDtypeStruct`, and its compiled stage called.",
    topologies=ONE_AND_SEVERAL,
    expect=everywhere(as_the_map(PROGRAMS["map"])),
)
def lowered_for_shapes(impl: Implementation, cluster: Cluster) -> None:
    """Call the mapped function, then the compiled stage of one that was lowered for the shapes of
    the same arguments.
    """
    program, rows = PROGRAMS["map"], impl.given(cluster.rows(3))
    cluster.step(THE_MAP, program.map(impl), rows)
    shapes = jax.ShapeDtypeStruct(rows.shape, rows.dtype)
    cluster.twice(Staged(impl, program.map(impl), shapes), rows)


def as_the_map_again(program: Program) -> Expectation:
    """Expect the same as `as_the_map`, and of the mapped function again after its compiled stage
    was called.
    """
    same = right(program)
    return steps(the_map_itself=same, first_call=same, second_call=same, the_map_again=same)


@family(
    "errors.lowered.one-process-{program}-after-a-call",
    program=PROGRAMS,
    claim=ONE_PROCESS_CLAIM,
    fact="errors.lowered.one-process-after-a-call",
    title="After a call, the compiled stage is called in one process: {program.text}.",
    left_out=APART,
    expect=lambda program: everywhere(as_the_map_again(program)),
)
def staged_after_call(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """A wrapper that was called, then its compiled stage, then the wrapper again."""
    function, rows = program.map(impl), impl.given(cluster.rows(3))
    cluster.step(THE_MAP, function, rows)
    cluster.twice(Staged(impl, function, rows), rows)
    cluster.step("the map again", function, rows)


@family(
    "errors.lowered.fix-{program}-lowered-for-{lowering}",
    program=PROGRAMS,
    lowering=LOWERINGS,
    claim="migrate-pmap.fix-host-local-global",
    fact="errors.lowered.fix-lowered-for-{lowering}",
    title=(
        "Arguments are converted to global arrays and results back around a compiled stage, "
        "lowered with {lowering.text} arguments: {program.text}."
    ),
    fixes="errors.lowered.several-processes-{program}",
    topologies=ONE_AND_SEVERAL,
    expect={
        LEGACY_PMAP: converted_as_the_map,
        NEW_PMAP: converted_as_the_map,
        SHARD_MAP: lambda program, lowering: (
            as_the_map(program) if lowering.converts else not_applicable(TO_BEGIN_WITH)
        ),
    },
)
def converted(impl: Implementation, cluster: Cluster, program: Program, lowering: Lowering) -> None:
    """Call the mapped function, then its compiled stage between the two documented conversions."""
    from jax.experimental import multihost_utils

    mesh, spec = impl.mesh("i"), jax.sharding.PartitionSpec("i")
    cluster.step(THE_MAP, program.map(impl), impl.given(cluster.rows(3)))

    def to_global(rows: Any) -> Any:
        return multihost_utils.host_local_array_to_global_array(rows, mesh, spec)

    rows = cluster.rows(3)
    if impl.is_pmap:
        cluster.step(WITHOUT, Staged(impl, program.map(impl), rows), rows)
    stage = Staged(impl, program.map(impl), to_global(rows) if lowering.converts else rows)

    def between(rows: Any) -> Any:
        result = stage(to_global(rows))
        return multihost_utils.global_array_to_host_local_array(result, mesh, program.out_spec)

    cluster.twice(between, rows)
