"""The arguments that `donate_argnums` of every form donates, and `donate_argnames`.

The effects on a donated array and its memory are tested in the section donation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_jax
from conformance.spec.expectation import every, noted, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import add, double
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.donated-arguments"
COUNT = 8  # devices
WIDTH = 3  # of a row
LEFT_OUT = "the result does not depend on the number of processes"


@described("the sum of the two arguments")
def added(place: Place) -> Any:
    return place.all_rows(WIDTH) * 3 + 1


@dataclass(frozen=True, slots=True)
class Numbers:
    """A `donate_argnums` for two arguments, and which of them it deletes."""

    key: str
    text: str
    argnums: Any
    gone: tuple[bool, bool]

    def right(self) -> Expectation:
        """The sum, and these arguments gone."""
        gone = list(self.gone)
        return twice(
            every(
                returns(added),
                noted("gone", f"donated: {gone}", lambda _, seen: seen == gone),
            )
        )


# Negative numbers donate nothing, in legacy too.
NUMBERS: Mapping[str, Numbers] = table(
    Numbers("first", "0", 0, (True, False)),
    Numbers("second", "1", 1, (False, True)),
    Numbers("list", "[0]", [0], (True, False)),
    Numbers("none", "()", (), (False, False)),
    Numbers("last", "-1", -1, (False, False)),
    Numbers("minus-two", "(-2,)", (-2,), (False, False)),
    Numbers("twice", "(0, 0)", (0, 0), (True, False)),
    Numbers("overlapping", "(0, -2)", (0, -2), (True, False)),
    Numbers("beyond", "2", 2, (False, False)),
    Numbers("far-beyond", "(0, 7)", (0, 7), (True, False)),
    Numbers("before", "-3", -3, (False, False)),
)


@family(
    "silences.donated.{numbers}",
    numbers=NUMBERS,
    claim=CLAIM,
    title="`donate_argnums={numbers.text}` donates these arguments and no others.",
    fact="silences.donated",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda numbers: everywhere(numbers.right()),
)
def donated(impl: Implementation, cluster: Cluster, numbers: Numbers) -> None:
    """A map of two arguments, some of them donated."""
    function = impl.map(add(), donate_argnums=numbers.argnums)
    for name in ("first call", "second call"):
        x = impl.map(double())(cluster.rows(WIDTH))
        y = impl.map(lambda x: x + 1)(cluster.rows(WIDTH))
        cluster.step(name, function, x, y)
        cluster.note("gone", [x.is_deleted(), y.is_deleted()])


@described("the sum of each row and the first row")
def added_to_each(place: Place) -> Any:
    rows = place.all_rows(WIDTH)
    return rows + rows[0]


@clause(
    "silences.donated.unmapped",
    claim=CLAIM,
    fact="silences.donated",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=everywhere(
        twice(
            every(
                returns(added_to_each),
                noted("gone", "donated: [False, True]", lambda _, seen: seen == [False, True]),
            )
        )
    ),
)
def donated_unmapped(impl: Implementation, cluster: Cluster) -> None:
    """A map donates an argument that it does not map, an uncommitted array on one device."""
    function = impl.map(add(), in_axes=(0, None), donate_argnums=1)
    for name in ("first call", "second call"):
        x = impl.map(double())(cluster.rows(WIDTH) / 2)
        y = jax.numpy.asarray(cluster.rows(WIDTH)[0]) + 0
        cluster.step(name, function, x, y)
        cluster.note("gone", [x.is_deleted(), y.is_deleted()])


@clause(
    "silences.donated.args-info",
    claim=CLAIM,
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=everywhere(
        noted("donated", "donated: [True, False]", lambda _, seen: seen == [True, False])
    ),
)
def donated_args_info(impl: Implementation, cluster: Cluster) -> None:
    """`args_info` of a lowered map says which of its arguments are donated."""
    function = impl.map(add(), donate_argnums=0)
    x, y = (impl.map(double())(cluster.rows(WIDTH)) for _ in range(2))
    lowered = function.lower(x, y)
    cluster.step("args_info", function, x, y)
    cluster.note("donated", [one.donated for one in jax.tree.leaves(lowered.args_info)])


@clause(
    "silences.donated.names",
    claim=CLAIM,
    expect=of_jax(
        raises(
            TypeError,
            r"^pmap\(\) got an unexpected keyword argument 'donate_argnames'",
        )
    ),
)
def by_name(impl: Implementation, cluster: Cluster) -> None:
    """`donate_argnames` is not an option of `jax.pmap`, and is not silently ignored."""
    pmap: Any = jax.pmap
    cluster.step("map", lambda: pmap(lambda x: x * 2, donate_argnames="x"))
