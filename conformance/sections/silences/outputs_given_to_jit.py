"""Outputs given to a plain `jax.jit` that donates its argument, and read afterwards.

After legacy pmap such an output stays: what is donated is a copy on one device. So an average of
parameters can start as the parameters themselves. (An output of `out_axes=None` is deleted there
too, and is not tested here.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, returns
from conformance.spec.family import table
from conformance.spec.peaks import figured
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.outputs-given-to-a-donating-jit",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
)

DELETED = "deleted"
ONES = np.ones(WIDTH, np.float32)
LATER = {"first call": "the first output later", "second call": "the second output later"}


def mixed(kept: Any, x: Any) -> Any:
    """A running average, exact in float32."""
    return kept * np.float32(0.5) + x * np.float32(0.25)


def doubled_rows(impl: Implementation, cluster: Cluster) -> Any:
    return impl.map(double())(impl.given(cluster.rows(WIDTH)))


def in_a_dictionary(impl: Implementation, cluster: Cluster) -> Any:
    """Two outputs."""
    return impl.map(lambda x: {"a": x * 2, "b": x * 3})(impl.given(cluster.rows(WIDTH)))


def of_numpy(make: Callable[..., Any], rows: Any) -> Any:
    """The output of each of these, by NumPy."""
    return {"a": rows * 2, "b": rows * 3} if make is in_a_dictionary else rows * 2


@dataclass(frozen=True, slots=True)
class Giving:
    """An output, the jit, and how the output is given to it."""

    key: str
    text: str  # how it is given
    jit: Callable[[], Callable[..., Any]]
    give: Callable[[Any, Callable[..., Any]], Any]
    model: Callable[[Any], Any]  # of the output, by NumPy
    make: Callable[[Implementation, Cluster], Any] = doubled_rows
    fixes: str | None = None

    def columns(self) -> Columns:
        """The jit's result is right, and the output is there afterwards, unchanged."""

        def output(place: Place) -> Any:
            return of_numpy(self.make, place.rows(WIDTH))

        right = returns(lambda place: self.model(output(place)), text="what NumPy gives")
        stays = figured(DELETED, "the output is not deleted", lambda _, seen: seen is False)
        unchanged = returns(output, text="the output, unchanged")
        return everywhere(
            every(in_steps(every(right, stays), *TWICE), in_steps(unchanged, *LATER.values()))
        )


def averaging() -> Any:
    return jax.jit(mixed, donate_argnums=0)


def with_ones(out: Any, jit: Callable[..., Any]) -> Any:
    return jit(out, ONES)


def average(a: Any) -> Any:
    return mixed(a, ONES)


GIVEN: Mapping[str, Giving] = table(
    Giving("by-number", "with `donate_argnums=0`", averaging, with_ones, average),
    Giving(
        "by-name",
        "by keyword, with `donate_argnames`",
        lambda: jax.jit(mixed, donate_argnames="kept"),
        lambda out, jit: jit(kept=out, x=ONES),
        average,
    ),
    Giving(
        "alone",
        "as the only argument, with `donate_argnums=0`",
        lambda: jax.jit(lambda kept: kept + 1, donate_argnums=0),
        lambda out, jit: jit(out),
        lambda a: a + 1,
    ),
    Giving(
        "tree",
        "in a dictionary with `donate_argnums=0`",
        lambda: jax.jit(lambda kept: jax.tree.map(lambda x: x + 1, kept), donate_argnums=0),
        lambda out, jit: jit(out),
        lambda tree: {name: a + 1 for name, a in tree.items()},
        in_a_dictionary,
    ),
    Giving(
        "row",
        "by its first row `out[0]`, with `donate_argnums=0`,",
        lambda: jax.jit(lambda kept: kept + 1, donate_argnums=0),
        lambda out, jit: jit(out[0]),
        lambda a: a[0] + 1,
    ),
    Giving(
        "not-donated",
        "without donation",
        lambda: jax.jit(mixed),
        with_ones,
        average,
    ),
    Giving(
        "copied",
        "as a copy, `jnp.array(out, copy=True)`, with `donate_argnums=0`",
        averaging,
        lambda out, jit: jit(jnp.array(out, copy=True), ONES),
        average,
        fixes="silences.given-to-jit.by-number",
    ),
    Giving(
        "copied-tree",
        "as a copy of each leaf of a dictionary with `donate_argnums=0`",
        lambda: jax.jit(lambda kept: jax.tree.map(lambda x: x + 1, kept), donate_argnums=0),
        lambda out, jit: jit(jax.tree.map(lambda x: jnp.array(x, copy=True), out)),
        lambda tree: {name: a + 1 for name, a in tree.items()},
        in_a_dictionary,
        "silences.given-to-jit.tree",
    ),
)


@DEFAULTS.family(
    "silences.given-to-jit.{giving}",
    giving=GIVEN,
    title="An output that is given to a plain jax.jit {giving.text} stays and can be read later.",
    fact="silences.given-to-jit.{giving}",
    expect=lambda giving: giving.columns(),
)
def given(impl: Implementation, cluster: Cluster, giving: Giving) -> None:
    """Twice: a map, a jit of its output, and a use of the output."""
    jit = giving.jit()
    for name in TWICE:
        out = giving.make(impl, cluster)
        cluster.step(name, giving.give, out, jit)
        cluster.note(DELETED, any(leaf.is_deleted() for leaf in jax.tree.leaves(out)))
        cluster.step(LATER[name], jax.tree.map, np.asarray, out)
