"""The names that went with the old pmap, and what the new one is made of.

A name that is deprecated should say so where it is used, and once it is gone say what to use: both
are judged by what the user of a main file gets to see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    difference,
    every,
    not_applicable,
    noted,
    returns,
    sharded,
)
from conformance.judging.observation import Step
from conformance.probing import child
from conformance.probing.child_programs import FORMS, ROWS
from conformance.sections.switches import DEADLINE_S, ON_TWO_DEVICES, PROGRAMS, saw_warnings

NO_DIFFERENCE = not_applicable("it is the same whichever implementation runs")


def only_new(expectation: Expectation) -> dict[str, Expectation]:
    """What does not depend on the implementation is checked once, as what JAX offers unasked."""
    return {LEGACY_PMAP: NO_DIFFERENCE, NEW_PMAP: expectation, SHARD_MAP: NO_DIFFERENCE}


NAMES = {
    "device_put_sharded": np.array(ROWS, np.float32),
    "device_put_replicated": np.array([ROWS[0], ROWS[0]], np.float32),
    "PmapSharding": np.array(ROWS, np.float32),
}
A_REPLACEMENT = r"use jax\.|https?:"


def _is_deprecation(warning: dict[str, Any], name: str) -> bool:
    return warning["category"] == "DeprecationWarning" and name in warning["message"]


def warns_of(name: str, form: str, *, or_refers: bool) -> Expectation:
    """A DeprecationWarning about `name` is shown; or, `or_refers`, an error names a replacement.

    A call that returns must return the right values besides.
    """

    def of(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            refers = re.search(A_REPLACEMENT, step.raised.message) is not None
            return or_refers and refers, str(step)
        problem = difference(step.leaves[0], NAMES[name]) if form == "call" else None
        shown = any(w["shown"] and _is_deprecation(w, name) for w in step.extra["warned"])
        return shown and problem is None, problem or saw_warnings(step)

    either = ", or an error names a replacement" if or_refers else ""
    return OfEachStep(f"a DeprecationWarning about {name} is shown{either}", of)


def reach_for(impl: Any, cluster: Any, name: str, form: str) -> None:
    """The name is used twice in a new process, in the main file."""
    answers: list[child.Answer] = []

    def wait() -> Any:
        answers.append(child.run(PROGRAMS, "deprecated", name, form, environment=ON_TWO_DEVICES))
        result = answers[0].result()
        return np.array(result, np.float32) if form == "call" else result

    cluster.step("the program", wait)
    if answers:
        cluster.note("warned", answers[0].warnings)


def _claim_of(name: str, form: str) -> str:
    """The document speaks of the two functions' use alone; it is silent on all else."""
    if form != "call" or name == "PmapSharding":
        return "pmap-silence.deprecated-names-warn-and-go"
    return f"migrate-pmap.{name.replace('_', '-')}-deprecated"


_HOW = {
    "attribute": "looked up as an attribute of its module",
    "import": "imported by name",
    "call": "called",
}
for _name in NAMES:
    for _form in FORMS:
        _claim = _claim_of(_name, _form)
        _slug = "pmap-sharding" if _name == "PmapSharding" else _name.replace("_", "-")
        clause(
            f"switches.{_slug}.{_form}",
            claim=_claim,
            # Deprecated, as the document says, is not yet removed.
            expect=only_new(warns_of(_name, _form, or_refers=_claim.startswith("pmap-silence"))),
            deadline_s=DEADLINE_S,
            parameters={"name": _name, "form": _form},
            title=f"{_name} is {_HOW[_form]}.",
            selects=True,
        )(reach_for)


ONE_ROW_EACH = noted(
    "shard shapes",
    "each device holds one row",
    lambda place, shapes: shapes == [[1, 2]] * place.topology.devices_per_process,
)


def stacked(impl: Any, cluster: Any, name: str) -> None:
    """What a stacking utility returns is sharded over the devices, not replicated."""
    impl.select()
    rows = cluster.rows(2)
    given = list(rows) if name == "device_put_sharded" else rows[0]
    for step in ("first call", "second call"):
        result = cluster.step(step, lambda: getattr(jax, name)(given, cluster.local_devices))
        if result is not None:
            cluster.note("shard shapes", [list(s.data.shape) for s in result.addressable_shards])


def _first_row_repeated(place: Place) -> Any:
    """the first row, once for each device"""
    return np.repeat(place.rows(2)[:1], place.topology.devices_per_process, 0)


for _name, _model in (
    ("device_put_sharded", lambda place: place.rows(2)),
    ("device_put_replicated", _first_row_repeated),
):
    _stacks = every(returns(_model, text="the stacked rows"), ONE_ROW_EACH)
    clause(
        f"switches.{_name.replace('_', '-')}.stacks",
        claim="migrate-pmap.stacking-utilities-shard",
        needs=devices(2),
        expect={
            LEGACY_PMAP: _stacks,
            NEW_PMAP: _stacks,
            SHARD_MAP: not_applicable("the utilities make arguments for pmap"),
        },
        parameters={"name": _name},
        title=f"What {_name} returns is sharded over the devices, not replicated.",
        selects=True,
    )(stacked)


# --- What the new pmap is made of -----------------------------------------------------------------


def _of_type(name: str) -> Expectation:
    right = returns(lambda place: place.rows(2) * 2, text="the rows, doubled")
    return every(sharded(f"is a {name}", lambda place, s: s["type"] == name), right)


@clause(
    "switches.sharding-of-outputs",
    claim="migrate-pmap.pmap-sharding-legacy",
    needs=devices(2),
    expect={
        LEGACY_PMAP: _of_type("PmapSharding"),
        NEW_PMAP: _of_type("NamedSharding"),
        SHARD_MAP: _of_type("NamedSharding"),
    },
)
def sharding_of_outputs(impl: Any, cluster: Any) -> None:
    """A map's output has the sharding of its implementation."""
    cluster.twice(impl.map(lambda x: x * 2), cluster.rows(2))


def _traces(text: str, holds: Callable[[Sequence[str]], bool]) -> Expectation:
    return noted("primitives", text, lambda place, seen: holds(seen))


def _is_jit_of_shard_map(seen: Sequence[str]) -> bool:
    outer = seen[: seen.index("shard_map")] if "shard_map" in seen else []
    return ("jit" in outer or "pjit" in outer) and "xla_pmap" not in seen


_JIT_OF_SHARD_MAP = _traces("a shard_map inside a jit", _is_jit_of_shard_map)


@clause(
    "switches.built-on-shard-map",
    claim="migrate-pmap.built-on-shard-map",
    needs=devices(2),
    expect={
        LEGACY_PMAP: _traces("a primitive of its own", lambda seen: seen[0] == "xla_pmap"),
        NEW_PMAP: _JIT_OF_SHARD_MAP,
        SHARD_MAP: _JIT_OF_SHARD_MAP,
    },
)
def built_on_shard_map(impl: Any, cluster: Any) -> None:
    """The primitives that a map is traced to, outermost first."""
    function, rows = impl.map(lambda x: x * 2), cluster.rows(2)
    for step in ("first trace", "second trace"):
        traced = cluster.step(step, lambda: jax.make_jaxpr(function)(rows))
        if traced is not None:
            cluster.note("primitives", list(_primitives(traced.jaxpr)))


def _primitives(jaxpr: Any) -> list[str]:
    found = []
    for equation in jaxpr.eqns:
        found.append(equation.primitive.name)
        for inner in equation.params.values():
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                found += _primitives(getattr(inner, "jaxpr", inner))
    return found
