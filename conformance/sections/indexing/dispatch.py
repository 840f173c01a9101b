"""What a call costs before any device works: how many Python functions run for it.

A call that JAX dispatches in C++ runs none. Their number is exact, where microseconds are noise;
the section `timing` shows these beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import (
    Expectation,
    every,
    not_applicable,
    noted,
    returns,
    steps,
)
from conformance.probing.calls import Calls, calls_of

CALLS = "Python functions"
EXCESS = "more than under jit"
WARM_UP = 3  # calls until every cache is filled
LEAVES = 200
MOST = 60  # functions that are shown by name
SEVERAL = ("2x2", "4x2")

PROGRAMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "one": ("one small array", lambda x: x * 2),
    "leaves": (f"a pytree of {LEAVES} leaves", lambda tree: {k: x * 2 for k, x in tree.items()}),
    "psum": ("a psum", lambda x: jax.lax.psum(x, "i")),
}


def argument(cluster: Place, program: str) -> Any:
    """The program's argument: a row of 4 per device, or the same in each of the leaves."""
    rows = cluster.rows(4)
    return {f"{i:03}": rows for i in range(LEAVES)} if program == "leaves" else rows


def model_of(program: str) -> Callable[[Place], Any]:
    """What this process holds of the result."""

    def model(place: Place) -> Any:
        if program == "psum":
            return np.broadcast_to(place.all_rows(4).sum(0), place.rows(4).shape)
        doubled = place.rows(4) * 2
        return [doubled] * LEAVES if program == "leaves" else doubled

    return model


def given(impl: Any, tree: Any) -> Any:
    """The argument as a map's own output lies on its devices; one array in all leaves."""
    leaves, structure = jax.tree.flatten(tree)
    array = impl.map(lambda x: x)(impl.given(leaves[0]))
    return jax.tree.unflatten(structure, [array] * len(leaves))


def warmed(cluster: Any, name: str, call: Callable[[], Any]) -> Calls | None:
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


def counted(cluster: Any, name: str, function: Callable[..., Any], *args: Any) -> int | None:
    """A warmed call as a step, with the number of Python functions that ran for it."""
    calls = warmed(cluster, name, lambda: function(*args))
    if calls is None:
        return None
    cluster.note(CALLS, calls.total)
    cluster.note("most called", [f"{name} {n}" for name, n in calls.counts.most_common(MOST)])
    return calls.total


NONE = noted(CALLS, "no Python function runs for a call", lambda _, n: n == 0)


def dispatch(impl: Any, cluster: Any, program: str) -> None:
    """A warmed call of the map."""
    mapped = impl.map(PROGRAMS[program][1])
    x = given(impl, argument(cluster, program))
    mapped(x)  # what is counted below is JAX's own function, without our witness around it
    counted(cluster, "call", mapped.function, x)


for _name, (_text, _) in PROGRAMS.items():
    clause(
        f"indexing.dispatch.{_name}",
        claim="pmap-silence.dispatch-cost",
        topologies=ONE_AND_FOUR,
        parameters={"program": _name},
        title=f"A call with {_text} is dispatched in C++, as legacy's.",
        expect=dict.fromkeys(IMPLEMENTATIONS, every(NONE, returns(model_of(_name)))),
    )(dispatch)


def top_level(impl: Any, cluster: Any, program: str) -> None:
    """A warmed call of the map, and one of the same map under jit."""
    x = given(impl, argument(cluster, program))
    body = PROGRAMS[program][1]
    mapped, inner = impl.map(body), impl.map(body)
    mapped(x)
    above = counted(cluster, "top level", mapped.function, x)
    under = counted(cluster, "under jit", jax.jit(inner.function), x)
    if above is not None and under is not None:
        cluster.note(EXCESS, above - under)


def _faster(program: str) -> Expectation:
    text = "no more Python functions run at the top level than under jit"
    right = returns(model_of(program))
    return every(
        steps(top_level=right, under_jit=right),
        steps(under_jit=noted(EXCESS, text, lambda _, n: n <= 0)),
    )


for _name, (_text, _) in PROGRAMS.items():
    clause(
        f"indexing.top-level.{_name}",
        claim="migrate-pmap.top-level-faster",
        topologies=ONE_AND_FOUR,
        parameters={"program": _name},
        title=f"A call with {_text} costs less at the top level than under jit.",
        expect={
            LEGACY_PMAP: not_applicable("the statement is about the new jax.pmap"),
            NEW_PMAP: _faster(_name),
            SHARD_MAP: not_applicable("the statement is about the new jax.pmap"),
        },
    )(top_level)


# --- C6: from host-local to global and back ------------------------------------------------------

CONVERSIONS = "conversions"
TO_GLOBAL = "host_local_array_to_global_array"
TO_LOCAL = "global_array_to_host_local_array"

# No option avoids the round trip, says the document: these are those that jax.pmap has.
OPTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "none": lambda cluster: {},
    "axis-size": lambda cluster: {"axis_size": len(cluster.devices)},
    "backend": lambda cluster: {"backend": jax.default_backend()},
    "devices": lambda cluster: {"devices": cluster.devices},
    "donate": lambda cluster: {"donate_argnums": 0},
    "out-axes-none": lambda cluster: {"out_axes": None},
}


def round_trip(impl: Any, cluster: Any, option: str) -> None:
    """A warmed call of the map with an option, and the conversions that ran for it."""
    options = OPTIONS[option](cluster)
    mapped = impl.map(PROGRAMS["psum" if "out_axes" in options else "one"][1], **options)
    fresh = [given(impl, cluster.rows(4)) for _ in range(WARM_UP + 2)]  # a donated one is gone
    mapped(fresh.pop())
    calls = warmed(cluster, "call", lambda: mapped.function(fresh.pop()))
    if calls is not None:
        names = {name.rsplit(":", 1)[-1] for name in calls.counts}
        both = [one for one in (TO_GLOBAL, TO_LOCAL) if any(n.startswith(one) for n in names)]
        cluster.note(CONVERSIONS, both)


ROUND_TRIP = noted(
    CONVERSIONS, "converted to a global array and back", lambda _, seen: len(seen) == 2
)
NO_ROUND_TRIP = noted(CONVERSIONS, "no conversion", lambda _, seen: not seen)


def _round_trip(option: str, claim: str) -> None:
    right = returns(_reduced if option == "out-axes-none" else model_of("one"))
    clause(
        f"indexing.round-trip.{option}",
        claim=claim,
        needs=processes(2),
        topologies=SEVERAL,
        parameters={"option": option},
        title="A call converts its host-local arrays to global ones and back"
        + (f", with {option} too." if option != "none" else "."),
        expect={
            LEGACY_PMAP: every(NO_ROUND_TRIP, right),
            NEW_PMAP: every(ROUND_TRIP, right),
            SHARD_MAP: not_applicable("the statement is about jax.pmap"),
        },
    )(round_trip)


def _reduced(place: Place) -> Any:
    """the sum over the devices of all processes"""
    return place.all_rows(4).sum(0)


for _option in OPTIONS:
    _round_trip(
        _option,
        "migrate-pmap.round-trip-conversion"
        if _option == "none"
        else "migrate-pmap.round-trip-unavoidable",
    )

clause(
    "indexing.round-trip.fix-shard-map",
    claim="migrate-pmap.fix-round-trip-shard-map",
    fixes="indexing.round-trip.none",
    needs=processes(2),
    topologies=SEVERAL,
    parameters={"option": "none"},
    title="A shard_map over global arrays converts nothing.",
    expect={
        LEGACY_PMAP: not_applicable("the fix is jax.shard_map"),
        NEW_PMAP: not_applicable("the fix is jax.shard_map"),
        SHARD_MAP: every(NO_ROUND_TRIP, returns(model_of("one"))),
    },
)(round_trip)
