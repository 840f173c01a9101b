"""The older place of shard_map and its older arguments: what warns, and what is refused."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.sharded_computation import ABOUT_JIT, COUNT, P, line
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import noted, raises, returns, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.releases import by_release
from conformance.spec.texts import described
from conformance.worker import child
from conformance.worker.protocols import Cluster, Implementation

WARNED = "warned"
DEADLINE_S = 90.0  # of a new process that imports jax
MODULE = "conformance.worker.old_import"
OLD = "jax.experimental.shard_map is deprecated in v0.8.0."


def _none(place: Any, seen: Any) -> bool:
    return bool(seen == [])


def _once(place: Any, seen: Any) -> bool:
    return [(one["category"], one["count"]) for one in seen if one["message"].startswith(OLD)] == [
        ("DeprecationWarning", 1)
    ] and len(seen) == 1


@clause(
    "sharded_computation.import.warning",
    claim="sharded-computation.shard-map-import",
    title="From JAX 0.8.0, importing jax.experimental.shard_map warns once per process.",
    cause="old-shard-map-import-warns-once",
    left_out="the result does not depend on the number of processes",
    deadline_s=DEADLINE_S,
    expect=of_jax(
        by_release(
            "0.8.0",
            before=steps(imported_twice=noted(WARNED, "no warning", _none)),
            since=steps(imported_twice=noted(WARNED, "one DeprecationWarning", _once)),
        )
    ),
)
def import_warning(impl: Implementation, cluster: Cluster) -> None:
    """A new process imports the function from its older place, twice."""
    answers: list[child.Answer] = []

    def wait() -> Any:
        answers.append(child.run(MODULE, "imported-twice"))
        return answers[0].result()

    cluster.step("imported twice", wait)
    if answers:
        cluster.note(WARNED, answers[0].warnings)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the older function or of pmap, which jax.shard_map does not have."""

    key: str
    text: str
    options: Mapping[str, Any]


ARGUMENTS: Mapping[str, Argument] = table(
    Argument("check-rep", "`check_rep=`, which is now `check_vma=`", {"check_rep": False}),
    Argument("donate-argnums", "`donate_argnums=`, which belongs to jit", {"donate_argnums": (0,)}),
    Argument("axis-name", "`axis_name=`, which belongs to pmap", {"axis_name": "x"}),
)


@family(
    "sharded_computation.argument.{argument}",
    argument=ARGUMENTS,
    claim="sharded-computation.shard-map-import",
    title="jax.shard_map refuses the argument {argument.text}.",
    fact="sharded_computation.argument",
    needs=devices(COUNT),
    left_out=ABOUT_JIT,
    expect=lambda argument: of_jax(
        twice(
            raises(
                TypeError,
                rf"got an unexpected keyword argument '{next(iter(argument.options))}'",
            )
        )
    ),
)
def with_argument(impl: Implementation, cluster: Cluster, argument: Argument) -> None:
    """jax.shard_map is called with an argument that it does not have."""

    def run() -> Any:
        make: Any = jax.shard_map
        function = make(
            lambda x: x * 2, mesh=line(), in_specs=P("x"), out_specs=P("x"), **argument.options
        )
        return function(np.arange(COUNT, dtype=np.float32))

    cluster.twice(run)


# --- The older function's own arguments -----------------------------------------------------------


@described("the sum of all numbers")
def total(place: Any) -> Any:
    return np.arange(COUNT, dtype=np.float32).sum(keepdims=True)


@dataclass(frozen=True, slots=True)
class Keyword:
    """Arguments of the function at the older place; `gone` since 0.8.0, or never there."""

    key: str
    text: str
    options: Mapping[str, Any]
    gone: bool = False
    strange: bool = False

    @property
    def cause(self) -> str:
        """The known issue that its refusal shows; empty if it is always taken."""
        if self.strange:
            return "old-shard-map-takes-no-check-vma"
        return "old-shard-map-takes-no-auto" if self.gone else ""

    def expected(self) -> Expectation:
        """The sum, or Python's own refusal."""
        right = twice(returns(total))
        (name,) = self.options
        refused = twice(raises(TypeError, rf"got an unexpected keyword argument '{name}'"))
        if self.strange:
            return refused
        return by_release("0.8.0", before=right, since=refused) if self.gone else right


KEYWORDS: Mapping[str, Keyword] = table(
    Keyword("check-rep-off", "`check_rep=False`", {"check_rep": False}),
    Keyword("check-rep-on", "`check_rep=True`", {"check_rep": True}),
    Keyword("auto", "`auto=`", {"auto": frozenset()}, gone=True),
    Keyword("check-vma", "`check_vma=`", {"check_vma": False}, strange=True),
    Keyword("axis-names", "`axis_names=`", {"axis_names": {"x"}}, strange=True),
)


@family(
    "sharded_computation.import.keyword.{keyword}",
    keyword=KEYWORDS,
    claim="sharded-computation.shard-map-import",
    title="shard_map imported from jax.experimental.shard_map, with {keyword.text}.",
    fact=lambda keyword: (
        f"sharded_computation.import.keyword.{'auto' if keyword.gone else 'others'}"
    ),
    cause=lambda keyword: keyword.cause,
    needs=devices(COUNT),
    left_out=ABOUT_JIT,
    expect=lambda keyword: of_jax(keyword.expected()),
)
def with_keyword(impl: Implementation, cluster: Cluster, keyword: Keyword) -> None:
    """Call the older function with one of its own arguments, or with one of the newer function."""
    make = importlib.import_module("jax.experimental.shard_map").shard_map
    rows = np.arange(COUNT, dtype=np.float32)

    def run(x: Any) -> Any:
        function = make(
            lambda y: jax.lax.psum(y, "x"),
            mesh=line(),
            in_specs=P("x"),
            out_specs=P(),
            **keyword.options,
        )
        return jax.jit(function)(x)

    cluster.twice(run, rows)
