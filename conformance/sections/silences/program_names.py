"""The name of a mapped function's compiled program, by which profiles, logs and dumps tell the
programs apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from conformance.sections.silences.answers import (
    ANSWER,
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    ask,
    control,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps
from conformance.spec.peaks import figured
from conformance.worker.protocols import Cluster, Implementation

NAME = "train_step"
NAMED = every(
    CONTROLLED,
    in_steps(figured(ANSWER, f"is named after {NAME}", lambda _, saw: saw.endswith(NAME)), *TWICE),
)

DEFAULTS = Defaults(
    claim="pmap-silence.program-names",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    expect=of_pmaps(NAMED, "impl.map wraps the body in a function of its own there"),
)


def module_name(function: Any, rows: Any) -> str:
    """Return the name of the module that is compiled."""
    text: str = function.lower(rows).compile().as_text()
    return text.split(",")[0].removeprefix("HloModule ")


def name_twice(impl: Implementation, cluster: Cluster, make: Callable[[], Any]) -> None:
    """Ask for the name of a new function's program, twice, after a control."""
    control(impl, cluster)
    rows = cluster.rows(WIDTH)
    for step in TWICE:
        ask(cluster, step, lambda: module_name(make(), rows))


@DEFAULTS.clause("silences.program-name.module")
def module(impl: Implementation, cluster: Cluster) -> None:
    """The compiled module of a mapped function is named after the function."""

    def make() -> Any:
        def train_step(x: Any) -> Any:
            return x * 2

        return impl.map(train_step)

    name_twice(impl, cluster, make)


@DEFAULTS.clause("silences.program-name.in-a-jit", fixes="silences.program-name.module")
def in_a_jit(impl: Implementation, cluster: Cluster) -> None:
    """The compiled module of a jit around a mapped function is named after the jitted function."""

    def make() -> Any:
        function = impl.map(lambda x: x * 2)

        def train_step(x: Any) -> Any:
            return function(x)

        return jax.jit(train_step)

    name_twice(impl, cluster, make)
