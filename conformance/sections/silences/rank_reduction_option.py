"""The configuration option jax_pmap_no_rank_reduction, with which a program asks for legacy pmap's
shards as they are by default: with the leading axis, of size 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CALL,
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    control,
    doubled,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.peaks import figured
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

OPTION = "jax_pmap_no_rank_reduction"
SHARD = "shard"

DEFAULTS = Defaults(
    claim="pmap-silence.rank-reduction-option", needs=devices(2), left_out=ONE_PROCESS_ALONE
)


@contextmanager
def option_set(value: bool) -> Iterator[None]:
    """With the option at this value; JAX 0.7.2 to 0.8.3 warn of False, which is another matter."""
    before = jax.config.values.get(OPTION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        jax.config.update(OPTION, value)
    try:
        yield
    finally:
        jax.config.update(OPTION, before)


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the option, or None, where it is not set."""

    key: str
    text: str
    value: bool | None
    fixes: str | None = None

    def columns(self) -> Columns:
        """Right results; and the leading axis in each shard, unless the option drops it."""
        right = in_steps(returns(doubled), CALL)
        if self.value is not False:
            shape = figured(SHARD, f"a shard of shape {(1, WIDTH)}", lambda _, s: s == [1, WIDTH])
            right = every(right, in_steps(shape, CALL))
        return of_pmaps(every(CONTROLLED, right), "the option is about pmap")


CASES: Mapping[str, Case] = table(
    Case("on", f"`jax.config.update('{OPTION}', True)` works", True),
    Case("off", f"`jax.config.update('{OPTION}', False)` works", False),
    Case(
        "default",
        f"Without {OPTION}, each shard of an output has the leading axis",
        None,
        "silences.rank-reduction-option.on",
    ),
)


@DEFAULTS.family(
    "silences.rank-reduction-option.{case}",
    case=CASES,
    title="{case.text}.",
    fact="silences.rank-reduction-option.{case}",
    expect=lambda case: case.columns(),
)
def option(impl: Implementation, cluster: Cluster, case: Case) -> None:
    """A map that is made and called after the option is set; a control shows which pmap it is."""
    control(impl, cluster)
    rows = impl.given(cluster.rows(WIDTH))
    shapes: list[list[int]] = []

    def call() -> Any:
        with nullcontext() if case.value is None else option_set(case.value):
            results = impl.map(double())(rows)
            shapes.append([*results.addressable_shards[0].data.shape])
            return np.asarray(results)

    cluster.step(CALL, call)
    for shape in shapes:
        cluster.note(SHARD, shape)
