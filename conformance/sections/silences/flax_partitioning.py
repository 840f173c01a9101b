"""flax's partitioning in a mapped body: names of axes that the map's mesh does not have.

flax turns such names into a sharding constraint if a mesh is set, and leaves them aside otherwise.
In a body of legacy pmap none is set, so that they change nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

ROW = (2, 3)  # two examples of three numbers
KERNEL = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
RULES = (("batch", "data"), ("embed", None))


@described("each row, multiplied by the kernel")
def multiplied(place: Place) -> Any:
    return place.rows(*ROW) @ KERNEL


def linen() -> Any:
    return importlib.import_module("flax.linen")


def dense() -> Any:
    """A dense layer that names the axes of its kernel, and begins with these numbers."""
    named = linen().with_partitioning(lambda key, shape, dtype: KERNEL, (None, "model"))
    return linen().Dense(4, kernel_init=named)


def weights() -> Any:
    """The layer's variables, in boxes that name their axes."""
    return dense().init(jax.random.key(0), np.ones(ROW, np.float32))


def applied() -> Callable[[Any], Any]:
    layer, boxed = dense(), weights()
    return lambda x: layer.apply(boxed, x)


def applied_unboxed() -> Callable[[Any], Any]:
    layer, plain = dense(), linen().unbox(weights())
    return lambda x: layer.apply(plain, x)


def initialised() -> Callable[[Any], Any]:
    layer = dense()
    return lambda x: layer.init_with_output(jax.random.key(0), x)[0]


def constrained(rules: Any = RULES) -> Callable[[Any], Any]:
    def body(x: Any) -> Any:
        with linen().logical_axis_rules(rules):
            return linen().with_logical_constraint(x, ("batch", "embed")) @ KERNEL

    return body


@dataclass(frozen=True, slots=True)
class Use:
    """A use of named axes; `make` returns the body."""

    key: str
    text: str
    make: Callable[[], Callable[[Any], Any]]


USES: Mapping[str, Use] = table(
    Use("applied", "applies a Dense whose kernel has nn.with_partitioning", applied),
    Use("initialised", "initialises a Dense whose kernel has nn.with_partitioning", initialised),
    Use("constrained", "calls nn.with_logical_constraint under nn.logical_axis_rules", constrained),
)

DEFAULTS = Defaults(
    claim="pmap-silence.flax-partitioning",
    needs=devices(2),
    left_out=ONE_PROCESS_ALONE,
    requires=("flax",),
    expect=everywhere(twice(returns(multiplied))),
)


@DEFAULTS.family(
    "silences.flax-partitioning.{use}",
    use=USES,
    title="A mapped body {use.text}.",
    fact="silences.flax-partitioning",
)
def named(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A map whose body names axes that no mesh has."""
    cluster.twice(impl.map(use.make()), impl.given(cluster.rows(*ROW)))


@DEFAULTS.clause(
    "silences.flax-partitioning.unboxed",
    title="A mapped body applies a Dense to variables made outside, whose names nn.unbox removed.",
    fixes="silences.flax-partitioning.applied",
)
def unboxed(impl: Implementation, cluster: Cluster) -> None:
    """A map whose body applies a layer to plain variables."""
    cluster.twice(impl.map(applied_unboxed()), impl.given(cluster.rows(*ROW)))


@DEFAULTS.clause(
    "silences.flax-partitioning.without-rules",
    title="A mapped body calls nn.with_logical_constraint without rules.",
    fixes="silences.flax-partitioning.constrained",
)
def without_rules(impl: Implementation, cluster: Cluster) -> None:
    """A map whose body names logical axes that no rule turns into axes of a mesh."""
    cluster.twice(impl.map(constrained(())), impl.given(cluster.rows(*ROW)))
