"""The shape that a mapped body sees, and the document's adjustments to it.

The shapes are recorded while the body is traced, because that is where a user would print them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import Expectation, every, not_applicable, noted, returns
from conformance.probing.recording import FIRST_CALL, SECOND_CALL
from conformance.sections.rank.bodies import mapped

FEATURES = 128  # of the document's (8, 128) array

SEEN = "shapes in the body"


def sees(*shape: int) -> Expectation:
    """Whenever the body is traced, its (last) argument has this shape."""
    return noted(SEEN, f"the body sees {shape}", lambda place, seen: seen == [list(shape)])


def of_pmap(*expected: Expectation) -> dict[str, Expectation]:
    """What both pmaps must do; shard_map has a clause of its own."""
    return {
        LEGACY_PMAP: every(*expected),
        NEW_PMAP: every(*expected),
        SHARD_MAP: not_applicable("the statement is about pmap's body"),
    }


def of_shard_map(*expected: Expectation) -> dict[str, Expectation]:
    """What shard_map must do; the pmaps have a clause of their own."""
    reason = "the statement is about shard_map's body"
    return {
        LEGACY_PMAP: not_applicable(reason),
        NEW_PMAP: not_applicable(reason),
        SHARD_MAP: every(*expected),
    }


def watched(cluster: Any, function: Callable[..., Any], seen: list[Any], *args: Any) -> None:
    """Two calls of a function whose body appends the shape it sees to `seen`."""
    for call in (FIRST_CALL, SECOND_CALL):
        cluster.step(call, function, *args)
        cluster.note(SEEN, [shape for k, shape in enumerate(seen) if shape not in seen[:k]])


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(FEATURES) * 2


@clause(
    "rank.body.pmap",
    claim="migrate-pmap.pmap-body-rank",
    topologies=ONE_AND_FOUR,
    expect=of_pmap(sees(FEATURES), returns(doubled)),
)
def body_of_pmap(impl: Any, cluster: Any) -> None:
    """A pmap over the rows of a (8, 128) array sees (128,)."""
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.append(list(x.shape))
        return x * 2

    watched(cluster, impl.map(body), seen, cluster.rows(FEATURES))


@clause(
    "rank.body.pmap-second-axis",
    claim="migrate-pmap.pmap-body-rank",
    topologies=ONE_AND_FOUR,
    expect=of_pmap(sees(FEATURES), returns(doubled)),
)
def body_of_pmap_second_axis(impl: Any, cluster: Any) -> None:
    """A pmap over the columns of a (128, 8) array (`in_axes=1`) sees (128,) too."""
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.append(list(x.shape))
        return x * 2

    watched(cluster, impl.map(body, in_axes=1), seen, cluster.rows(FEATURES).T)


@clause(
    "rank.body.shard-map",
    claim="migrate-pmap.shard-map-body-rank",
    topologies=ONE_AND_FOUR,
    expect=of_shard_map(sees(1, FEATURES), returns(doubled)),
)
def body_of_shard_map(impl: Any, cluster: Any) -> None:
    """A shard_map over the rows of a (8, 128) array sees (1, 128)."""
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.append(list(x.shape))
        return x * 2

    watched(cluster, mapped(impl, body), seen, impl.given(cluster.rows(FEATURES)))


@clause(
    "rank.body.shard-map-second-axis",
    claim="migrate-pmap.shard-map-body-rank",
    expect=of_shard_map(sees(FEATURES, 1), returns(lambda place: doubled(place).T)),
)
def body_of_shard_map_second_axis(impl: Any, cluster: Any) -> None:
    """A shard_map over the columns of a (128, 8) array sees (128, 1)."""
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.append(list(x.shape))
        return x * 2

    spec = jax.sharding.PartitionSpec(None, "i")
    function = jax.shard_map(body, mesh=impl.mesh(), in_specs=spec, out_specs=spec)
    columns = cluster.rows(FEATURES).T
    watched(cluster, impl.adopt(jax.jit(function), "jit(shard_map)"), seen, columns)


# --- the adjustments ------------------------------------------------------------------------------

MATRIX, VECTOR = (FEATURES, 3), (FEATURES,)


def weights(shape: tuple[int, ...]) -> Any:
    """Small whole numbers, so that products are exact."""
    return (np.arange(np.prod(shape)) % 3).reshape(shape).astype(np.float32)


ADJUSTMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "squeeze": lambda x, w: jnp.dot(x.squeeze(0), w),
    "matmul": lambda x, w: jnp.matmul(x, w),
    "index": lambda x, w: jnp.dot(x[0], w),
}


def adjusted(
    impl: Any, cluster: Any, option: str, shape: tuple[int, ...], leading: bool = False
) -> None:
    """The document's product of one row and the weights, with one of its options in shard_map."""
    w = weights(tuple(shape))
    rows = impl.given(cluster.rows(FEATURES))
    if impl.is_pmap:
        cluster.twice(impl.map(lambda x: jnp.dot(x, w)), rows)
        return
    body = ADJUSTMENTS[option]
    if leading:
        cluster.twice(mapped(impl, lambda x: jnp.expand_dims(body(x, w), 0)), rows)
    else:
        cluster.twice(mapped(impl, lambda x: body(x, w)), rows)


def _declare_adjustments() -> None:
    written = {
        "squeeze": "`jnp.dot(x.squeeze(0), weights)`",
        "matmul": "`jnp.matmul(x, weights)`",
        "index": "`jnp.dot(x[0], weights)`",
    }
    for option, said in written.items():
        for shape in (MATRIX, VECTOR):
            name = f"rank.option-{option}.{'matrix' if shape == MATRIX else 'vector'}"

            def product(place: Place, shape: tuple[int, ...] = shape) -> Any:
                """each row's product with the weights, stacked, as pmap does"""
                return place.rows(FEATURES) @ weights(shape)

            for leading in (False,) if option == "matmul" else (False, True):
                ending = ", its leading axis put back" if leading else ", as written"
                clause(
                    f"{name}.leading-axis" if leading else name,
                    claim=f"migrate-pmap.rank-option-{option}",
                    needs=devices(2),
                    topologies=ONE_AND_FOUR,
                    expect=dict.fromkeys(IMPLEMENTATIONS, returns(product)),
                    parameters={"option": option, "shape": list(shape), "leading": leading},
                    title=f"{said} with weights of {shape}{ending}",
                )(adjusted)


_declare_adjustments()
