"""Legacy pmap's response to a call: an error, by type and message, or values with their properties.

A message is as useful as legacy pmap's if it names what legacy pmap's names: which argument, which
sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.spec.columns import Columns, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.expectation import NotApplicable, every, in_steps, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.names import SHARD_MAP
from conformance.spec.peaks import figured
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

CALL = "the call"  # the one step of a call that is to be refused
CONTROL = "a plain map"  # which shows what is under test, where the step itself calls no map
ANSWER = "answer"
AGAIN = "again"  # what a step compiled
WIDTH = 3
ONE_PROCESS_ALONE = "one process decides this alone; multi_controller tests several"


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that legacy pmap refuses: `call` makes the mapped function and calls it.

    `text` ends the clause's title. `otherwise` is the result of an implementation that accepts it;
    `shard_map` the expectation there, if a shard_map can be called so. `phase` is None for an error
    of the wrapper itself, before tracing.
    """

    key: str
    text: str
    claim: str
    call: Callable[[Implementation, Cluster], Any]
    error: type[BaseException]
    message: str
    phase: str | None
    otherwise: Model | None = None
    shard_map: Expectation | None = None


def as_legacy(case: Refused, reason: str) -> Columns:
    """Expect legacy pmap's type of error and the facts in its message; `reason` is why shard_map is
    not tested.
    """
    said = raises(case.error, case.message, phase=case.phase, otherwise=case.otherwise)
    columns = of_pmaps(in_steps(said, CALL), reason)
    if case.shard_map is not None:
        columns[SHARD_MAP] = in_steps(case.shard_map, CALL)
    return columns


def control(impl: Implementation, cluster: Cluster) -> None:
    """A map that works, of a row per device."""
    cluster.step(CONTROL, impl.map(double()), impl.given(cluster.rows(WIDTH)))


@described("this process's rows, doubled")
def doubled(place: Place) -> Any:
    return place.rows(WIDTH) * 2


CONTROLLED = in_steps(returns(doubled), CONTROL)


def after_control(columns: Columns) -> Columns:
    """The same, after a control."""
    return {
        name: said if isinstance(said, NotApplicable) else every(CONTROLLED, said)
        for name, said in columns.items()
    }


def ask(cluster: Cluster, name: str, question: Callable[[], Any]) -> None:
    """A step that notes, as `answer`, what `question` returns (a JSON value)."""
    told: list[Any] = []

    def asking() -> None:
        told.append(question())

    cluster.step(name, asking)
    if told:
        cluster.note(ANSWER, told[0])


def answers(wanted: Any) -> Expectation:
    """The step returned, and its answer is this."""
    return figured(ANSWER, f"answers {wanted!r}", lambda place, saw: bool(saw == wanted))


def compiled(text: str, holds: Callable[[int], bool]) -> Expectation:
    """Expect a step that returns to compile as many programs as `holds` says."""
    return figured(AGAIN, text, lambda _, seen: holds(seen["compiled"]))


def numbers(*shape: int) -> Any:
    """1, 2, 3, ... as float32."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def rank(axis: int, least: int, has: int, shape: str) -> str:
    """Legacy's text: the axis, the rank that it needs and the one that there is."""
    return (
        rf"^pmap was requested to map its argument along axis {axis}, which implies that its rank "
        rf"should be at least {least}, but is only {has} \(its shape is {re.escape(shape)}\)$"
    )


def nested() -> Callable[[Any, Any], Any]:
    """Two results in a tree."""
    return lambda x, y: {"s": x + y, "t": [x * 2]}


NESTED = "PyTreeDef({'s': *, 't': [*]})"
