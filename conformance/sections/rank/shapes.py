"""The shape that a mapped body sees, and the document's adjustments to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from conformance.sections.rank import (
    ABOUT_PMAP,
    ABOUT_SHARD_MAP,
    P,
    map_of_blocks,
    sees,
    watch,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_pmaps, of_shard_map
from conformance.spec.expectation import every, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation

FEATURES = 128  # of the document's (8, 128) array


@clause(
    "rank.body.pmap",
    claim="migrate-pmap.pmap-body-rank",
    fact="rank.body.pmap",
    topologies=ONE_AND_FOUR,
    expect=of_pmaps(twice(every(sees(FEATURES), returns(doubled(FEATURES)))), ABOUT_PMAP),
)
def body_of_pmap(impl: Implementation, cluster: Cluster) -> None:
    """A pmap over the rows of a (8, 128) array sees (128,)."""
    watch(cluster, impl.map, double(), cluster.rows(FEATURES))


@clause(
    "rank.body.pmap-second-axis",
    claim="migrate-pmap.pmap-body-rank",
    fact="rank.body.pmap",
    topologies=ONE_AND_FOUR,
    expect=of_pmaps(twice(every(sees(FEATURES), returns(doubled(FEATURES)))), ABOUT_PMAP),
)
def body_of_pmap_second_axis(impl: Implementation, cluster: Cluster) -> None:
    """A pmap over the columns of a (128, 8) array (`in_axes=1`) sees (128,) too."""
    watch(cluster, partial(impl.map, in_axes=1), double(), cluster.rows(FEATURES).T)


@clause(
    "rank.body.shard-map",
    claim="migrate-pmap.shard-map-body-rank",
    fact="rank.body.shard-map",
    cause="body-keeps-the-mapped-axis",
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(
        twice(every(sees(1, FEATURES), returns(doubled(FEATURES)))), ABOUT_SHARD_MAP
    ),
)
def body_of_shard_map(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over the rows of a (8, 128) array sees (1, 128)."""
    rows = impl.given(cluster.rows(FEATURES))
    watch(cluster, partial(map_of_blocks, impl), double(), rows)


@described("this process's columns, doubled")
def columns_doubled(place: Place) -> Any:
    return doubled(FEATURES)(place).T


@clause(
    "rank.body.shard-map-second-axis",
    claim="migrate-pmap.shard-map-body-rank",
    fact="rank.body.shard-map",
    cause="body-keeps-the-mapped-axis",
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(
        twice(every(sees(FEATURES, 1), returns(columns_doubled))),
        ABOUT_SHARD_MAP,
    ),
)
def body_of_shard_map_second_axis(impl: Implementation, cluster: Cluster) -> None:
    """A shard_map over the columns of a (128, 8) array sees (128, 1)."""
    columns = P(None, "i")
    mapping = partial(map_of_blocks, impl, in_specs=columns, out_specs=columns)
    watch(cluster, mapping, double(), cluster.all_rows(FEATURES).T)


# --- the adjustments ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One of the document's products of a block of one row and the weights."""

    key: str
    text: str
    program: Callable[[Any, Any], Any]


OPTIONS = table(
    Option("squeeze", "`jnp.dot(x.squeeze(0), weights)`", lambda x, w: jnp.dot(x.squeeze(0), w)),
    Option("matmul", "`jnp.matmul(x, weights)`", lambda x, w: jnp.matmul(x, w)),
    Option("index", "`jnp.dot(x[0], weights)`", lambda x, w: jnp.dot(x[0], w)),
)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of this shape: small whole numbers, so that products are exact."""

    key: str
    shape: tuple[int, ...]

    def array(self) -> Any:
        """The weights."""
        return (np.arange(np.prod(self.shape)) % 3).reshape(self.shape).astype(np.float32)


WEIGHTS = table(Weights("matrix", (FEATURES, 3)), Weights("vector", (FEATURES,)))


@dataclass(frozen=True, slots=True)
class Ending:
    """The last operation on a product before it is returned."""

    key: str
    text: str
    program: Callable[[Any], Any]


ENDINGS = table(
    Ending("", "as written", lambda y: y),
    Ending(
        ".leading-axis",
        "with the leading axis added to the result",
        lambda y: jnp.expand_dims(y, 0),
    ),
)


JOINED = "the products joined end to end"


def products(weights: Weights) -> Expectation:
    """The product of each row of all and the weights."""

    @described("each row's product with the weights, stacked, as pmap does")
    def model(place: Place) -> Any:
        return place.rows(FEATURES) @ weights.array()

    def joined(place: Place) -> Any:
        return model(place).ravel()

    return twice(returns(model, mistakes={JOINED: joined}))


@family(
    "rank.option-{option}.{weights}{ending}",
    option=OPTIONS,
    weights=WEIGHTS,
    ending=ENDINGS,
    only=lambda option, ending: option.key != "matmul" or ending.key == "",  # it loses no axis
    claim="migrate-pmap.rank-option-{option}",
    title="{option.text} with weights of {weights.shape}, {ending.text}",
    fact="rank.option-{option}",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=lambda weights: everywhere(products(weights)),
)
def adjusted(
    impl: Implementation, cluster: Cluster, option: Option, weights: Weights, ending: Ending
) -> None:
    """The document's product of one row and the weights, with one of its options in shard_map."""
    w = weights.array()
    rows = impl.given(cluster.rows(FEATURES))
    if impl.is_pmap:
        cluster.twice(impl.map(lambda x: jnp.dot(x, w)), rows)
    else:
        cluster.twice(map_of_blocks(impl, lambda x: ending.program(option.program(x, w))), rows)
