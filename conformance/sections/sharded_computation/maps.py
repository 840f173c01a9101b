"""The tutorial on sharded computation, second half: shard_map over a line of devices.

Where the example is a program that pmap's users write too, pmap runs it in its own style. The
tutorial calls its maps without jit and says that they work inside it as well, so both are run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.sharded_computation import (
    ABOUT_JIT,
    COUNT,
    LOCAL,
    SIZE,
    P,
    line,
    mapped_by_specs,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns, of_shard_map
from conformance.spec.comparing import Model
from conformance.spec.expectation import every, noted, returns, steps, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described, text_of
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.kept import keep_maps
from conformance.worker.protocols import Cluster, Implementation

SEEN = "shapes in the body"


def part(place: Place, array: Any) -> Any:
    """This process's part of an array whose leading axis is spread over the devices."""
    return np.split(array, place.topology.processes)[place.process]


@described("twice the sine of each element, plus one")
def waves(place: Place) -> Any:
    return part(place, (2 * np.sin(np.arange(SIZE)) + 1).astype(np.float32))


@described("the elements, doubled")
def elements_doubled(place: Place) -> Any:
    return part(place, np.arange(SIZE, dtype=np.int32) * 2)


@described("the sum of each shard: 6, 22, 38, 54, 70, 86, 102, 118")
def shard_sums(place: Place) -> Any:
    return part(place, np.arange(6, 119, 16, dtype=np.int32))


@described("the sum of all shards: 496")
def total(place: Place) -> Any:
    return np.int32(496)


def in_rows(model: Model) -> Model:
    """The model as pmap returns it: one row per device."""

    @described(text_of(model))
    def rows(place: Place) -> Any:
        return model(place).reshape(place.topology.devices_per_process, -1)

    return rows


@dataclass(frozen=True, slots=True)
class Example:
    """One of the tutorial's maps of the numbers from 0 to 31: the body, and its NumPy model.

    `out` are the axes in its out_specs; where there are none, pmap's out_axes are None. Where
    `watched`, the shapes that the body saw are noted.
    """

    key: str
    claim: str
    text: str
    body: Callable[[Any], Any]
    model: Model
    out: tuple[str, ...] = ("x",)
    watched: bool = False

    def by_shard_map(self) -> Expectation:
        """The values of the whole array."""
        return self._seen(self.model)

    def by_all(self) -> Columns:
        """The same of shard_map and, in pmap's rows, of both pmaps."""
        by_pmap = self._seen(in_rows(self.model) if self.out else self.model)
        return {LEGACY_PMAP: by_pmap, NEW_PMAP: by_pmap, SHARD_MAP: self.by_shard_map()}

    def _seen(self, model: Model) -> Expectation:
        values = twice(returns(model))
        return every(values, LOCAL_SHAPE) if self.watched else values


LOCAL_SHAPE = steps(
    second_call=noted(SEEN, "shape (4,) and no other", lambda _, seen: seen == [[LOCAL]])
)

EXAMPLES: Mapping[str, Example] = table(
    Example(
        "elementwise-map",
        "shard-map-elementwise",
        "An elementwise map returns the values of the whole array",
        lambda x: 2 * jnp.sin(x) + 1,
        waves,
    ),
    Example(
        "local-shape",
        "shard-map-local-shape",
        "The body sees 4 of the 32 elements",
        lambda x: x * 2,
        elements_doubled,
        watched=True,
    ),
    Example(
        "sum-per-shard",
        "sum-per-shard",
        "A sum in the body gives one sum per device",
        lambda x: jnp.sum(x, keepdims=True),
        shard_sums,
    ),
    Example(
        "psum",
        "psum-across-shards",
        "A psum with out_specs P() gives one sum of all",
        lambda x: jax.lax.psum(x.sum(), "x"),
        total,
        out=(),
    ),
)


def map_twice(impl: Implementation, cluster: Cluster, example: Example, *, jitted: bool) -> None:
    """Two calls of the tutorial's shard_map of an example's body, or of pmap's equivalent."""
    seen: set[tuple[int, ...]] = set()

    def body(x: Any) -> Any:  # a function of its own: caches are kept by function
        seen.add(tuple(x.shape))
        return example.body(x)

    if impl.is_pmap:
        rows = cluster.mine(np.arange(SIZE, dtype=np.int32).reshape(COUNT, LOCAL))
        cluster.twice(impl.map(body, "x", out_axes=0 if example.out else None), rows)
    else:
        function = mapped_by_specs(impl, body, line(), P("x"), P(*example.out), jitted=jitted)
        cluster.twice(function, jnp.arange(SIZE))
    if example.watched:
        cluster.note(SEEN, sorted(list(shape) for shape in seen))


@family(
    "sharded_computation.{example}",
    example=EXAMPLES,
    claim="sharded-computation.{example.claim}",
    title="{example.text}.",
    fact="sharded_computation.{example}",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=lambda example: of_shard_map(example.by_shard_map(), ABOUT_JIT),
)
def map_as_written(impl: Implementation, cluster: Cluster, example: Example) -> None:
    """A map of the numbers from 0 to 31, called without jit."""
    map_twice(impl, cluster, example, jitted=False)


@family(
    "sharded_computation.{example}.inside-jit",
    example=EXAMPLES,
    claim="sharded-computation.shard-map-inside-jit",
    title="{example.text}; inside jit, or as a pmap.",
    fact="sharded_computation.{example}",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=lambda example: example.by_all(),
)
def map_inside_jit(impl: Implementation, cluster: Cluster, example: Example) -> None:
    """A map of the numbers from 0 to 31, inside jit, or as a pmap."""
    map_twice(impl, cluster, example, jitted=True)


# --- The older place of the name

IMPORTED = {
    "elementwise": EXAMPLES["elementwise-map"],
    "sum-per-shard": EXAMPLES["sum-per-shard"],
    "psum": EXAMPLES["psum"],
}


@family(
    "sharded_computation.import.{example}",
    example=IMPORTED,
    claim="sharded-computation.shard-map-import",
    title="shard_map imported from jax.experimental.shard_map: {example}.",
    fact="sharded_computation.import",
    needs=devices(COUNT),
    topologies=ONE_AND_FOUR,
    expect=lambda example: of_shard_map(twice(returns(example.model)), ABOUT_JIT),
)
def imported(impl: Implementation, cluster: Cluster, example: Example) -> None:
    """Call a shard_map imported by `from jax.experimental.shard_map import shard_map`."""

    def run(kept: Any) -> Any:
        make = importlib.import_module("jax.experimental.shard_map").shard_map
        function = make(
            lambda x: example.body(x), mesh=line(), in_specs=P("x"), out_specs=P(*example.out)
        )
        return kept.adopt(function, "shard_map")(np.arange(SIZE, dtype=np.int32))

    cluster.twice(keep_maps(impl, run))
