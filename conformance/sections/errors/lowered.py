"""The compiled stage of a lowered map: in one process the map itself, in several not quite.

A pmap's arguments and results are each process's own. The wrapper of the new pmap converts them to
global arrays and back; its `lower` hands out the stage below that conversion, so that whoever calls
it has to convert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_PROCESS, Place
from conformance.judging.expectation import (
    Expectation,
    Model,
    OfEachStep,
    difference,
    not_applicable,
    returns,
    steps,
)
from conformance.judging.observation import Step
from conformance.probing.implementations import wrapper_kind

SEVERAL = ("2x2", "4x2")
ALL = (*ONE_PROCESS, *SEVERAL)


@dataclass(frozen=True, slots=True)
class Program:
    """A map of this process's rows, by what a conversion could get wrong in it."""

    name: str
    text: str
    body: Callable[[Any], Any]
    model: Model
    out_axes: int | None = 0

    def map(self, impl: Any) -> Any:
        """The program under an implementation; a function of its own, as caches go by function."""
        return impl.map(lambda x: self.body(x), out_axes=self.out_axes)

    @property
    def out_spec(self) -> Any:
        """The spec of the global result."""
        if self.out_axes is None:
            return jax.sharding.PartitionSpec()
        return jax.sharding.PartitionSpec(*[None] * self.out_axes, "i")


PROGRAMS = {
    one.name: one
    for one in (
        Program("map", "a plain map", lambda x: x * 2, lambda place: place.rows(3) * 2),
        Program(
            "psum",
            "a map with a psum over all devices",
            lambda x: x + jax.lax.psum(x, "i"),
            lambda place: place.rows(3) + place.all_rows(3).sum(0),
        ),
        Program(
            "out-axis-1",
            "a map with `out_axes=1`",
            lambda x: x * 2,
            lambda place: place.rows(3).T * 2,
            out_axes=1,
        ),
        Program(
            "out-axis-none",
            "a map with `out_axes=None`",
            lambda x: jax.lax.psum(x, "i"),
            lambda place: place.all_rows(3).sum(0),
            out_axes=None,
        ),
        Program(
            "axis-index",
            "a map that asks for its index",
            lambda x: x * 0 + jax.lax.axis_index("i"),
            lambda place: place.mine(
                np.broadcast_to(
                    np.arange(place.topology.devices, dtype=np.float32)[:, None],
                    (place.topology.devices, 3),
                )
            ),
        ),
    )
}


def unconverted(model: Model) -> OfEachStep:
    """What the document says of the bare stage: not this process's result, as the map returns it.

    It raises, or returns a global array, or other values; what does happen is shown in the cell.
    """

    def of(place: Place, step: Step) -> tuple[bool, str]:
        want = np.asarray(model(place))
        if step.raised is not None or len(step.leaves) != 1:
            return True, str(step)
        leaf = step.leaves[0]
        same = leaf.shape == want.shape and difference(leaf, want) is None
        return not same, f"the map's own result: {step}" if same else str(step)

    return OfEachStep("does not return this process's result, as nothing is converted", of)


class Staged:
    """The compiled stage of a map, lowered on its first call."""

    def __init__(self, impl: Any, function: Any, *lowered_for: Any) -> None:
        self._impl, self._function, self._lowered_for = impl, function, lowered_for
        self._compiled: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            compiled = self._function.lower(*self._lowered_for).compile()
            kind = None if self._impl.is_pmap else "jit(shard_map)"
            kind = kind or wrapper_kind(self._function.function)
            self._compiled = self._impl.adopt(compiled, kind)
        return self._compiled(*args)


THE_MAP = "the map itself"


def staged(impl: Any, cluster: Any, name: str) -> None:
    """The map itself, then the compiled stage of another such map, with the same arguments."""
    program, rows = PROGRAMS[name], impl.given(cluster.rows(3))
    cluster.step(THE_MAP, program.map(impl), rows)
    cluster.twice(Staged(impl, program.map(impl), rows), rows)


def staged_after_call(impl: Any, cluster: Any, name: str) -> None:
    """A wrapper that was called, then its compiled stage, then the wrapper again."""
    function, rows = PROGRAMS[name].map(impl), impl.given(cluster.rows(3))
    cluster.step(THE_MAP, function, rows)
    cluster.twice(Staged(impl, function, rows), rows)
    cluster.step("the map again", function, rows)


def converted(impl: Any, cluster: Any, name: str, lowered_for: str) -> None:
    """The map itself, then its compiled stage between the two documented conversions."""
    from jax.experimental import multihost_utils

    program, mesh, spec = PROGRAMS[name], impl.mesh("i"), jax.sharding.PartitionSpec("i")
    cluster.step(THE_MAP, program.map(impl), impl.given(cluster.rows(3)))

    def to_global(rows: Any) -> Any:
        return multihost_utils.host_local_array_to_global_array(rows, mesh, spec)

    rows = cluster.rows(3)
    stage = Staged(impl, program.map(impl), to_global(rows) if lowered_for == "global" else rows)

    def whole(rows: Any) -> Any:
        result = stage(to_global(rows))
        return multihost_utils.global_array_to_host_local_array(result, mesh, program.out_spec)

    cluster.twice(whole, rows)


def _every_step(first: OfEachStep, later: OfEachStep) -> Expectation:
    return steps(the_map_itself=first, first_call=later, second_call=later)


for _program in PROGRAMS.values():
    _right = returns(_program.model, text="the map's result")
    assert isinstance(_right, OfEachStep)
    _bare = {
        LEGACY_PMAP: _every_step(_right, _right),
        NEW_PMAP: _every_step(_right, unconverted(_program.model)),
        SHARD_MAP: _every_step(_right, _right),
    }
    clause(
        f"errors.lowered.one-process-{_program.name}",
        claim="pmap-silence.lowered-one-process",
        title=f"The compiled stage of {_program.text}, in one process.",
        expect={**_bare, NEW_PMAP: _bare[LEGACY_PMAP]},
        parameters={"name": _program.name},
    )(staged)
    clause(
        f"errors.lowered.one-process-{_program.name}-after-a-call",
        claim="pmap-silence.lowered-one-process",
        title=f"The compiled stage of {_program.text} that was called before, in one process.",
        expect=dict.fromkeys(
            IMPLEMENTATIONS,
            steps(
                the_map_itself=_right, first_call=_right, second_call=_right, the_map_again=_right
            ),
        ),
        parameters={"name": _program.name},
    )(staged_after_call)
    clause(
        f"errors.lowered.several-processes-{_program.name}",
        claim="migrate-pmap.lowered-multi-process",
        title=f"The compiled stage of {_program.text}, with each process's own arguments.",
        needs=processes(2),
        topologies=SEVERAL,
        expect=_bare,
        parameters={"name": _program.name},
    )(staged)
    for _lowered_for in ("local", "global"):
        _of = "each process's own" if _lowered_for == "local" else "global"
        clause(
            f"errors.lowered.fix-{_program.name}-lowered-for-{_lowered_for}",
            claim="migrate-pmap.fix-host-local-global",
            title=f"Both conversions around {_program.text} that was lowered for {_of} arguments.",
            fixes=f"errors.lowered.several-processes-{_program.name}",
            topologies=ALL,
            expect={
                LEGACY_PMAP: not_applicable("legacy's compiled stage converts by itself"),
                NEW_PMAP: _bare[LEGACY_PMAP],
                SHARD_MAP: not_applicable("shard_map's arguments are global to begin with")
                if _lowered_for == "local"
                else _bare[SHARD_MAP],
            },
            parameters={"name": _program.name, "lowered_for": _lowered_for},
        )(converted)
