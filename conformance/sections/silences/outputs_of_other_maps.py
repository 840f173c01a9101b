"""Functions that take the outputs of several mapped functions: how often they are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.silences.answers import (
    AGAIN,
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    compiled,
    control,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere, of_pmaps
from conformance.spec.comparing import Model
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.compiling import compilations
from conformance.worker.protocols import Cluster, Implementation

STEPS = ("step 1", "step 2", "step 3")  # in which the output of one mapped function is used
OTHER_NAMES, ONE_NAME, UNNAMED = ("a", "b", "c"), ("a", "a", "a"), (None, None, None)
NO_DEFAULT = "a mesh has no default name"

DEFAULTS = Defaults(
    claim="pmap-silence.outputs-of-other-maps", needs=devices(2), left_out=ONE_PROCESS_ALONE
)


# The first count shows that JAX reports what it compiles.
ONCE = every(
    in_steps(compiled("JAX compiles for the first output", lambda count: count > 0), STEPS[0]),
    in_steps(compiled("JAX compiles nothing again", lambda count: count == 0), *STEPS[1:]),
)


@dataclass(frozen=True, slots=True)
class Use:
    """What is applied to each output, made once before; and what it gives in NumPy."""

    make: Callable[[Implementation], Callable[[Any], Any]]
    by_numpy: Callable[[Any], Any]


SUM = Use(lambda impl: jnp.sum, lambda a: a.sum())
ROW = Use(lambda impl: lambda x: x[0], lambda a: a[0])
NEXT_MAP = Use(lambda impl: impl.map(lambda x: x * 5, "z"), lambda a: a * 5)


@dataclass(frozen=True, slots=True)
class Case:
    """What takes the outputs, and the axis names of the mapped functions that they are from."""

    key: str
    text: str
    names: Sequence[str | None]
    uses: Sequence[Use]
    fixes: str | None = None

    def model(self, number: int) -> Model:
        """The results for the output of a mapped function, counted from 1."""

        @described(f"what NumPy gives of {number} times the rows")
        def results(place: Place) -> Any:
            return [use.by_numpy(place.rows(WIDTH) * number) for use in self.uses]

        return results

    def columns(self) -> Columns:
        """Right results, and programs for the first output that serve for the others."""
        values = (in_steps(returns(self.model(n)), name) for n, name in enumerate(STEPS, 1))
        if self.names == UNNAMED:
            return of_pmaps(every(CONTROLLED, *values, ONCE), NO_DEFAULT)
        return everywhere(every(*values, ONCE))


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
    """The outputs of three mapped functions in turn, with a count of what JAX compiles for each.

    The results are fetched to the host, so that their placement makes no difference. A control
    shows what `jax.pmap` is, where the mapped functions are to have no axis name.
    """
    if case.names == UNNAMED:
        control(impl, cluster)
        impl.select()
    made = compilations()

    def mapped(number: int, name: str | None) -> Callable[[Any], Any]:
        def body(x: Any) -> Any:
            return x * number

        return jax.pmap(body) if name is None else impl.map(body, name)

    rows = impl.given(cluster.rows(WIDTH))
    maps = [mapped(number, name) for number, name in enumerate(case.names, 1)]
    functions = [use.make(impl) for use in case.uses]
    jax.clear_caches()

    def results(mapped: Callable[[Any], Any], counts: list[int]) -> list[Any]:
        output = jax.block_until_ready(mapped(rows))
        before = len(made)
        found = [np.asarray(function(output)) for function in functions]
        counts.append(len(made) - before)
        return found

    for name, one in zip(STEPS, maps, strict=True):
        counts: list[int] = []
        cluster.step(name, results, one, counts)
        for count in counts:
            cluster.note(AGAIN, {"compiled": count})
