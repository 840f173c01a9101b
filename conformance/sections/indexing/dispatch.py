"""The cost of dispatching a call: the number of Python functions that run for it.

A call that JAX dispatches in C++ runs none. The number is exact, where microseconds are noise; the
section `timing` shows the time beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.spec.clause import clause, devices, processes
from conformance.spec.columns import everywhere, of_new_pmap, of_shard_map, unless_legacy
from conformance.spec.comparing import Model, in_container
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import (
    every,
    in_steps,
    not_applicable,
    noted,
    raises,
    returns,
    steps,
)
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, SEVERAL_PROCESSES, Place
from conformance.worker.bodies import Body, double, psum
from conformance.worker.calls import Calls, calls_of
from conformance.worker.dispatched import PROGRAMS, WIDTH, Program
from conformance.worker.protocols import Cluster, Implementation

CALLS = "Python functions"
EXCESS = "more than under jit"
WARM_UP = 3  # calls until every cache is filled
MOST = 60  # functions that are shown by name

ONE = PROGRAMS["one"]

DEFAULTS = Defaults(needs=processes(2), topologies=SEVERAL_PROCESSES)


def warmed(cluster: Cluster, name: str, call: Callable[[], Any]) -> Calls | None:
    """A step that calls until every cache is filled, and once more; what ran for that last call."""
    seen: list[Calls] = []

    def calling() -> Any:
        for _ in range(WARM_UP):
            jax.block_until_ready(call())
        result, calls = calls_of(call)
        seen.append(calls)
        return result

    cluster.step(name, calling)
    return seen[0] if seen else None


def counted(cluster: Cluster, name: str, function: Callable[..., Any], *args: Any) -> int | None:
    """A warmed call as a step, with the number of Python functions that ran for it."""
    calls = warmed(cluster, name, lambda: function(*args))
    if calls is None:
        return None
    cluster.note(CALLS, calls.total)
    cluster.note("most called", [f"{name} {n}" for name, n in calls.counts.most_common(MOST)])
    return calls.total


def some(what: str) -> Callable[[int], str]:
    """Return a formatter of a count by its first digit: small differences are not reported."""
    return lambda n: f"some {float(f'{n:.1g}'):.0f} {what}"


FEWER = some("Python functions fewer than at the top level")
NONE = noted(CALLS, "no Python function runs for a call", lambda _, n: n == 0, show=some(CALLS))


def result_of(program: Program) -> Model:
    """Return the model of a process's part of the result, with a pytree's leaves under
    their keys.
    """

    def by_key(result: Any) -> Any:
        return {f"{i:03}": leaf for i, leaf in enumerate(result)} if program.tree else result

    return in_container(by_key, program.model)


@family(
    "indexing.dispatch.{program}",
    program=PROGRAMS,
    claim="pmap-silence.dispatch-cost",
    title=(
        "Once compiled, a call with {program.text} runs no Python function, as under legacy pmap."
    ),
    fact="indexing.dispatch",
    topologies=ONE_AND_FOUR,
    needs=devices(8),
    expect=lambda program: everywhere(in_steps(every(NONE, returns(result_of(program))), "call")),
)
def dispatch(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Call a compiled mapped function."""
    mapped = impl.map(program.body())
    x = program.argument(impl, cluster)
    mapped(x)  # what is counted below is JAX's own function, without our witness around it
    counted(cluster, "call", mapped.function, x)


@family(
    "indexing.dispatch.fix-under-jit-{program}",
    program={key: PROGRAMS[key] for key in ("one", "leaves")},
    claim="pmap-silence.dispatch-cost",
    fixes=lambda program: f"indexing.dispatch.{program.key}",
    title="Once compiled, a call under jit with {program.text} runs no Python function.",
    fact="indexing.dispatch.fix-under-jit",
    topologies=ONE_PROCESS,
    left_out="in several processes, a map under jit spans one: indexing.under-jit.psum",
    needs=devices(8),
    expect=lambda program: of_new_pmap(
        in_steps(every(NONE, returns(result_of(program))), "call"),
        "legacy pmap and jit(shard_map) run none by themselves",
    ),
)
def dispatch_under_jit(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Call a compiled jit of a mapped function."""
    x = program.argument(impl, cluster)
    counted(cluster, "call", jax.jit(impl.map(program.body()).function), x)


UNDER_JIT_ELSEWHERE = "indexing.under-jit.psum tests several processes"


def _faster(program: Program) -> Expectation:
    text = "no more Python functions run at the top level than under jit"
    right = returns(result_of(program))
    return every(
        steps(top_level=right, under_jit=right),
        steps(under_jit=noted(EXCESS, text, lambda _, n: n <= 0, show=FEWER, at_most=True)),
    )


@family(
    "indexing.top-level.{program}",
    program=PROGRAMS,
    claim="migrate-pmap.top-level-faster",
    title=(
        "Once compiled, a call with {program.text} runs no more Python functions at the top "
        "level than under jit."
    ),
    fact="indexing.top-level",
    topologies=lambda program: ONE_PROCESS if program.key == "psum" else ONE_AND_FOUR,
    left_out=lambda program: UNDER_JIT_ELSEWHERE if program.key == "psum" else "",
    needs=devices(8),
    expect=lambda program: of_new_pmap(_faster(program), "the statement is about the new jax.pmap"),
)
def top_level(impl: Implementation, cluster: Cluster, program: Program) -> None:
    """Call a compiled mapped function, and the same one under jit."""
    x = program.argument(impl, cluster)
    mapped, inner = impl.map(program.body()), impl.map(program.body())
    mapped(x)
    above = counted(cluster, "top level", mapped.function, x)
    under = counted(cluster, "under jit", jax.jit(inner.function), x)
    if above is not None and under is not None:
        cluster.note(EXCESS, above - under)


# --- K4: what a collective under jit spans


def _own_sum(place: Place) -> Any:
    rows = place.rows(WIDTH)
    return np.broadcast_to(rows.sum(0), rows.shape)


SUM = PROGRAMS["psum"].model
AT_THE_TOP = returns(SUM, text="the sum over all processes")
UNDER_JIT = returns(
    SUM,
    text="the sum over all processes",
    mistakes={"the sum of this process's own rows": _own_sum},
)
SPANS = steps(top_level=AT_THE_TOP, under_jit=UNDER_JIT, again_under_jit=UNDER_JIT)
NOT_IMPLEMENTED = raises(
    NotImplementedError, "^jit of multi-host pmap not implemented", phase="lower"
)


@clause(
    "indexing.under-jit.psum-of-one-process",
    claim="pmap-silence.transforms-span-processes",
    title="A psum of a mapped function under jit has the same value as at the top level.",
    fact="indexing.under-jit.psum",
    left_out="indexing.under-jit.psum tests several processes",
    expect=everywhere(SPANS),
)
@DEFAULTS.clause(
    "indexing.under-jit.psum",
    claim="pmap-silence.transforms-span-processes",
    title=(
        "A psum of a mapped function under jit spans all processes, as at the top level; "
        "legacy pmap refuses it."
    ),
    expect=unless_legacy(
        steps(top_level=AT_THE_TOP, under_jit=NOT_IMPLEMENTED, again_under_jit=NOT_IMPLEMENTED),
        SPANS,
    ),
)
def psum_under_jit(impl: Implementation, cluster: Cluster) -> None:
    """A map with a psum, called as it is and under jit."""
    x = PROGRAMS["psum"].argument(impl, cluster)
    cluster.step("top level", impl.map(psum()), x)
    inner = impl.map(psum())
    jitted = jax.jit(lambda rows: inner(rows))
    cluster.step("under jit", jitted, x)
    cluster.step("again under jit", jitted, x)


@clause(
    "indexing.under-jit.and-by-itself",
    claim="pmap-silence.transforms-of-the-map",
    left_out="indexing.under-jit.psum tests several processes",
    expect=everywhere(
        steps(
            by_itself=returns(ONE.model),
            under_jit=returns(ONE.model),
            by_itself_again=returns(ONE.model),
        )
    ),
)
def by_itself_and_under_jit(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function that was called outside jit can be called under jit too."""
    x = ONE.argument(impl, cluster)
    mapped = impl.map(ONE.body())
    cluster.step("by itself", mapped, x)
    cluster.step("under jit", jax.jit(lambda rows: mapped(rows)), x)
    cluster.step("by itself again", mapped, x)


# --- C6: from host-local to global and back ------------------------------------------------------

CONVERSIONS = "conversions"
TO_GLOBAL = "host_local_array_to_global_array"
TO_LOCAL = "global_array_to_host_local_array"

ROUND_TRIP = noted(
    CONVERSIONS,
    "converted to a global array and back",
    lambda _, seen: seen == [TO_GLOBAL, TO_LOCAL],
)
NO_ROUND_TRIP = noted(CONVERSIONS, "no conversion", lambda _, seen: not seen)


@described("the sum over the devices of all processes")
def _reduced(place: Place) -> Any:
    return place.all_rows(WIDTH).sum(0)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of jax.pmap, for the devices of a cluster; and what is mapped with it."""

    key: str
    options: Callable[[Cluster], dict[str, Any]]
    body: Callable[[], Body] = double
    model: Model = ONE.model


# No option avoids the round trip, says the document: these are those that jax.pmap has.
OPTIONS: Mapping[str, Option] = table(
    Option("axis-size", lambda cluster: {"axis_size": len(cluster.devices)}),
    Option("backend", lambda cluster: {"backend": jax.default_backend()}),
    Option("devices", lambda cluster: {"devices": cluster.devices}),
    Option("donate", lambda cluster: {"donate_argnums": 0}),
    Option("out-axes-none", lambda cluster: {"out_axes": None}, psum, _reduced),
)


def _converted(model: Model) -> dict[str, Expectation]:
    """The new pmap converts there and back, where legacy does not."""
    right = returns(model)
    return {
        LEGACY_PMAP: in_steps(every(NO_ROUND_TRIP, right), "call"),
        NEW_PMAP: in_steps(every(ROUND_TRIP, right), "call"),
        SHARD_MAP: not_applicable("the statement is about jax.pmap"),
    }


def converting(impl: Implementation, cluster: Cluster, body: Body, **options: Any) -> None:
    """Run a compiled call as a step, and note its conversions."""
    mapped = impl.map(body, **options)
    fresh = [ONE.argument(impl, cluster) for _ in range(WARM_UP + 2)]  # a donated one is gone
    mapped(fresh.pop())
    calls = warmed(cluster, "call", lambda: mapped.function(fresh.pop()))
    if calls is not None:
        names = {name.rsplit(":", 1)[-1] for name in calls.counts}
        both = [one for one in (TO_GLOBAL, TO_LOCAL) if any(n.startswith(one) for n in names)]
        cluster.note(CONVERSIONS, both)


@DEFAULTS.clause(
    "indexing.round-trip.none",
    claim="migrate-pmap.round-trip-conversion",
    title="A call converts its host-local arrays to global ones and back.",
    fact="indexing.round-trip",
    cause="calls-convert-to-global-and-back",
    expect=_converted(ONE.model),
)
@DEFAULTS.clause(
    "indexing.round-trip.fix-shard-map",
    claim="migrate-pmap.fix-round-trip-shard-map",
    title="A shard_map over global arrays converts nothing.",
    fixes="indexing.round-trip.none",
    expect=of_shard_map(
        in_steps(every(NO_ROUND_TRIP, returns(ONE.model)), "call"), "the fix is jax.shard_map"
    ),
)
def round_trip(impl: Implementation, cluster: Cluster) -> None:
    """Call the mapped function without options."""
    converting(impl, cluster, double())


@DEFAULTS.family(
    "indexing.round-trip.{option}",
    option=OPTIONS,
    claim="migrate-pmap.round-trip-unavoidable",
    title="A call converts its host-local arrays to global ones and back, with {option} too.",
    fact="indexing.round-trip",
    cause="calls-convert-to-global-and-back",
    expect=lambda option: _converted(option.model),
)
def round_trip_with(impl: Implementation, cluster: Cluster, option: Option) -> None:
    """Call the mapped function with an option."""
    converting(impl, cluster, option.body(), **option.options(cluster))
