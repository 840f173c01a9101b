"""Functions that take the outputs of several mapped functions: how often they are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    control,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.peaks import figured
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.compiling import compilations
from conformance.worker.protocols import Cluster, Implementation

MAPS = 3  # whose outputs are used
OTHER_NAMES, ONE_NAME, UNNAMED = ("a", "b", "c"), ("a", "a", "a"), (None, None, None)
NO_DEFAULT = "a mesh has no default name"
COMPILED = "outputs compiled for"

DEFAULTS = Defaults(
    claim="pmap-silence.outputs-of-other-maps", needs=devices(2), left_out=ONE_PROCESS_ALONE
)


def rows_of_maps(place: Place) -> list[Any]:
    """The outputs: the rows, times one, two and three."""
    return [place.rows(WIDTH) * (number + 1) for number in range(MAPS)]


@dataclass(frozen=True, slots=True)
class Use:
    """What is applied to each output, made once before; and what it gives in NumPy."""

    step: str
    make: Callable[[Implementation], Callable[[Any], Any]]
    by_numpy: Callable[[Any], Any]

    def model(self) -> Model:
        """The results of all outputs."""

        @described("what NumPy gives of each output")
        def all_of_them(place: Place) -> Any:
            return [self.by_numpy(output) for output in rows_of_maps(place)]

        return all_of_them


SUM = Use("a sum", lambda impl: jnp.sum, lambda a: a.sum())
ROW = Use("a row", lambda impl: lambda x: x[0], lambda a: a[0])
NEXT_MAP = Use("the next map", lambda impl: impl.map(lambda x: x * 5, "z"), lambda a: a * 5)


@dataclass(frozen=True, slots=True)
class Case:
    """What takes the outputs, and the axis names of the mapped functions that they are from."""

    key: str
    text: str
    names: Sequence[str | None]
    uses: Sequence[Use]
    fixes: str | None = None

    def columns(self) -> Columns:
        """Right results, and programs for the first output that serve for the others."""
        once = figured(
            COMPILED, "JAX compiles for the first of three outputs alone", lambda _, seen: seen == 1
        )
        each = (in_steps(every(returns(use.model()), once), use.step) for use in self.uses)
        if self.names == UNNAMED:
            return of_pmaps(every(CONTROLLED, *each), NO_DEFAULT)
        return everywhere(every(*each))


CASES: Mapping[str, Case] = table(
    Case(
        "other-names",
        "A jnp function and an index are compiled once for the outputs of mapped functions with "
        "different axis names.",
        OTHER_NAMES,
        (SUM, ROW),
    ),
    Case(
        "unnamed",
        "A jnp function and an index are compiled once for the outputs of mapped functions without "
        "an axis name.",
        UNNAMED,
        (SUM, ROW),
    ),
    Case(
        "next-other-names",
        "A mapped function is compiled once for the outputs of mapped functions with different "
        "axis names.",
        OTHER_NAMES,
        (NEXT_MAP,),
    ),
    Case(
        "next-unnamed",
        "A mapped function is compiled once for the outputs of mapped functions without an axis "
        "name.",
        UNNAMED,
        (NEXT_MAP,),
    ),
    Case(
        "one-name",
        "A jnp function, an index and a mapped function are compiled once for the outputs of "
        "mapped functions with the same axis name.",
        ONE_NAME,
        (SUM, ROW, NEXT_MAP),
        "silences.outputs-of-maps.other-names",
    ),
)


@DEFAULTS.family(
    "silences.outputs-of-maps.{case}",
    case=CASES,
    title="{case.text}",
    expect=lambda case: case.columns(),
)
def used(impl: Implementation, cluster: Cluster, case: Case) -> None:
    """The outputs of three mapped functions in turn, with a count of those for which JAX compiles.

    A control shows what `jax.pmap` is, where the mapped functions are to have no axis name.
    """
    if case.names == UNNAMED:
        control(impl, cluster)
        impl.select()
    made = compilations()

    def mapped(number: int) -> Callable[[Any], Any]:
        def body(x: Any) -> Any:
            return x * (number + 1)

        name = case.names[number]
        return jax.pmap(body) if name is None else impl.map(body, name)

    def results(use: Use, compiled: list[bool]) -> Any:
        jax.clear_caches()
        rows = impl.given(cluster.rows(WIDTH))
        maps = [mapped(number) for number in range(MAPS)]
        outputs = jax.block_until_ready([one(rows) for one in maps])
        function, found = use.make(impl), []
        for output in outputs:
            before = len(made)
            found.append(jax.block_until_ready(function(output)))
            compiled.append(len(made) > before)
        return found

    for use in case.uses:
        compiled: list[bool] = []
        cluster.step(use.step, results, use, compiled)
        if compiled:
            cluster.note(COMPILED, sum(compiled))
