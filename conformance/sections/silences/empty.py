"""Arrays without elements: mapped, unmapped, made in the body, and gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE, WIDTH
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import TWICE, in_steps, returns
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation


def nothing(*shape: int) -> Model:
    """An array without elements, of this shape."""

    @described("an array without elements")
    def model(place: Place) -> Any:
        return np.zeros(shape, np.float32)

    return model


@dataclass(frozen=True, slots=True)
class Empty:
    """A map's body, made afresh, and its arguments; what this process then holds."""

    key: str
    text: str
    body: Callable[[], Any]
    arguments: Callable[[Place], tuple[Any, ...]]
    model: Model
    in_axes: Any = 0
    out_axes: Any = 0


def whole(place: Place) -> tuple[Any, ...]:
    """Rows without elements."""
    return (np.zeros((place.topology.devices_per_process, 0, WIDTH), np.float32),)


EMPTY: Mapping[str, Empty] = table(
    Empty("mapped", "rows without elements", lambda: lambda x: x * 2, whole, nothing(8, 0, WIDTH)),
    Empty(
        "added-up",
        "rows without elements, added up",
        lambda: lambda x: x.sum(0),
        whole,
        lambda place: np.zeros((8, WIDTH), np.float32),
    ),
    Empty(
        "psum",
        "a psum of an empty array",
        lambda: lambda x: jax.lax.psum(x, "i"),
        whole,
        nothing(8, 0, WIDTH),
    ),
    Empty(
        "gathered",
        "an all_gather of an empty array",
        lambda: lambda x: jax.lax.all_gather(x, "i"),
        whole,
        nothing(8, 8, 0, WIDTH),
    ),
    Empty(
        "whole",
        "an unmapped array without elements",
        lambda: lambda x, y: x.sum() + y.sum(),
        lambda place: (place.rows(WIDTH), np.zeros(0, np.float32)),
        lambda place: place.rows(WIDTH).sum(1),
        in_axes=(0, None),
    ),
    Empty(
        "whole-skipped",
        "an unmapped array without elements that the body skips",
        lambda: lambda x, y: x.sum() + (y.sum() if y.size else 0),
        lambda place: (place.rows(WIDTH), np.zeros(0, np.float32)),
        lambda place: place.rows(WIDTH).sum(1),
        in_axes=(0, None),
    ),
    Empty(
        "beside-rows",
        "rows without elements beside others",
        lambda: lambda x, y: (x * 2, y + 1),
        lambda place: (place.rows(WIDTH), *whole(place)),
        lambda place: (place.rows(WIDTH) * 2, np.zeros((8, 0, WIDTH), np.float32)),
    ),
    Empty(
        "made",
        "an empty slice as one of two results",
        lambda: lambda x: (x[:0], x * 2),
        lambda place: (place.rows(WIDTH),),
        lambda place: (np.zeros((8, 0), np.float32), place.rows(WIDTH) * 2),
    ),
    Empty(
        "columns",
        "columns without elements, with `in_axes=1`",
        lambda: lambda x: x * 2,
        lambda place: (np.zeros((0, 8, 2), np.float32),),
        nothing(8, 0, 2),
        in_axes=1,
    ),
    Empty(
        "put-along-axis-1",
        "rows without elements, returned with `out_axes=1`",
        lambda: lambda x: x * 2,
        whole,
        nothing(0, 8, WIDTH),
        out_axes=1,
    ),
    Empty(
        "no-result",
        "no result",
        lambda: lambda x: {},
        lambda place: (place.rows(WIDTH),),
        lambda place: {},
    ),
)


@family(
    "silences.empty.{case}",
    case=EMPTY,
    claim="pmap-silence.zero-size-arrays",
    title="A mapped function with {case.text}.",
    fact="silences.empty.mapped",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(8),
    expect=lambda case: everywhere(in_steps(returns(case.model), *TWICE)),
)
def mapped(impl: Implementation, cluster: Cluster, case: Empty) -> None:
    """Call twice a mapped function with nothing, or almost nothing, to compute."""
    function = impl.map(case.body(), in_axes=case.in_axes, out_axes=case.out_axes)
    cluster.twice(function, *case.arguments(cluster))


@family(
    "silences.empty.host-{way}",
    way={"numpy": np.asarray, "device-get": jax.device_get},
    claim="pmap-silence.zero-size-arrays",
    title="The output of a mapped function for rows without elements is fetched by {way}.",
    fact="silences.empty.fetched",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(8),
    expect=everywhere(in_steps(returns(nothing(8, 0, WIDTH)), "fetched")),
)
def fetched(impl: Implementation, cluster: Cluster, way: Callable[[Any], Any]) -> None:
    """An output without elements on the host."""
    output = impl.map(lambda x: x * 2)(*whole(cluster))
    cluster.step("fetched", lambda: way(output))
