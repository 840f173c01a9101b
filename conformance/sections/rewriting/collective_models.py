"""The collectives that are mapped and differentiated, each beside its NumPy model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.family import table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import Body

Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Collective:
    """`apply` works on one device's block, `model` on the stack of all devices' blocks.

    `kind` is what its facts are called by: one finding about a collective is one about its tiled
    form. `replicated` is whether every device ends up with the same value; `differentiable` whether
    JAX defines a gradient; `counts`, that it returns numbers of devices, and has none to define.
    """

    key: str
    apply: Body
    model: Callable[[Rows], Rows]
    kind: str
    replicated: bool = False
    differentiable: bool = True
    counts: bool = False

    @described("what this process's devices get, one row for each")
    def stacked(self, place: Place) -> Any:
        return place.mine(self.model(blocks(place)))

    @described("what this process's first device gets")
    def first(self, place: Place) -> Any:
        return self.stacked(place)[0]


def shape_of_block(place: Place) -> tuple[int, int]:
    """One row per device of the cluster, as the scattering collectives need."""
    return place.topology.devices, 2


def blocks(place: Place) -> Rows:
    """The stack of all devices' blocks."""
    return place.all_rows(*shape_of_block(place))


def _to_all(value: Rows, like: Rows) -> Rows:
    """The same value on every device."""
    return np.broadcast_to(value, (len(like), *value.shape))


def _ring() -> list[tuple[int, int]]:
    size = jax.device_count()
    return [(source, (source + 1) % size) for source in range(size)]


def _first_to_second(rows: Rows) -> Rows:
    received = np.zeros_like(rows)
    received[1] = rows[0]
    return received


COLLECTIVES: Mapping[str, Collective] = table(
    Collective(
        "psum",
        lambda x: jax.lax.psum(x, "i"),
        lambda a: _to_all(a.sum(0), a),
        kind="sum",
        replicated=True,
    ),
    Collective(
        "pmean",
        lambda x: jax.lax.pmean(x, "i"),
        lambda a: _to_all(a.mean(0), a),
        kind="sum",
        replicated=True,
    ),
    Collective(
        "pmax",
        lambda x: jax.lax.pmax(x, "i"),
        lambda a: _to_all(a.max(0), a),
        kind="extreme",
        replicated=True,
        differentiable=False,
    ),
    Collective(
        "pmin",
        lambda x: jax.lax.pmin(x, "i"),
        lambda a: _to_all(a.min(0), a),
        kind="extreme",
        replicated=True,
        differentiable=False,
    ),
    Collective(
        "all-gather",
        lambda x: jax.lax.all_gather(x, "i"),
        lambda a: _to_all(a, a),
        kind="all-gather",
        replicated=True,
    ),
    Collective(
        "all-gather-tiled",
        lambda x: jax.lax.all_gather(x, "i", tiled=True),
        lambda a: _to_all(a.reshape(-1, *a.shape[2:]), a),
        kind="all-gather",
        replicated=True,
    ),
    Collective(
        "psum-scatter",
        lambda x: jax.lax.psum_scatter(x, "i"),
        lambda a: a.sum(0),
        kind="psum-scatter",
    ),
    Collective(
        "psum-scatter-tiled",
        lambda x: jax.lax.psum_scatter(x, "i", tiled=True),
        lambda a: a.sum(0)[:, None],
        kind="psum-scatter",
    ),
    Collective(
        "ppermute",
        lambda x: jax.lax.ppermute(x, "i", _ring()),
        lambda a: np.roll(a, 1, 0),
        kind="ppermute",
    ),
    Collective(
        "ppermute-partial",
        lambda x: jax.lax.ppermute(x, "i", [(0, 1)]),
        _first_to_second,
        kind="ppermute",
    ),
    Collective(
        "all-to-all",
        lambda x: jax.lax.all_to_all(x, "i", 0, 0),
        lambda a: a.swapaxes(0, 1),
        kind="all-to-all",
    ),
    Collective(
        "all-to-all-tiled",
        lambda x: jax.lax.all_to_all(x, "i", 0, 1, tiled=True),
        lambda a: a.swapaxes(0, 1).reshape(len(a), 1, -1),
        kind="all-to-all",
    ),
    Collective(
        "axis-index",
        lambda x: jax.lax.axis_index("i"),
        lambda a: np.arange(len(a), dtype=np.int32),
        kind="axis-index",
        counts=True,
    ),
    Collective(
        "axis-size",
        lambda x: jax.numpy.int32(jax.lax.axis_size("i")),
        lambda a: np.full(len(a), len(a), np.int32),
        kind="axis-size",
        replicated=True,
        counts=True,
    ),
    Collective(
        "psum-of-one",
        lambda x: jax.numpy.int32(jax.lax.psum(1, "i")),
        lambda a: np.full(len(a), len(a), np.int32),
        kind="axis-size",
        replicated=True,
        counts=True,
    ),
)
