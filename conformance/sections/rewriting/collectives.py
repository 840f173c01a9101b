"""Collectives over a mesh axis against their NumPy models, and the out_specs that each needs.

Every collective is run three times: with an output per device, with an output that claims to be
replicated, and with the latter under `check_vma=False`. Whether the claim is consistent depends on
the collective alone, and is a column of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, Place
from conformance.judging.expectation import Expectation, every, not_applicable, raises, returns
from conformance.sections.rewriting.recipes import REPLICATED

WIDTH = 2

Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Collective:
    """`apply` works on one device's block, `model` on the stack of all devices' blocks.

    A block has one row per device, as the scattering collectives need. `replicated` is whether
    every device ends up with the same value; `differentiable` whether JAX defines a gradient.
    """

    name: str
    apply: Callable[[Any], Any]
    model: Callable[[Rows], Rows]
    replicated: bool = False
    differentiable: bool = True


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


COLLECTIVES = (
    Collective(
        "psum", lambda x: jax.lax.psum(x, "i"), lambda a: _to_all(a.sum(0), a), replicated=True
    ),
    Collective(
        "pmean", lambda x: jax.lax.pmean(x, "i"), lambda a: _to_all(a.mean(0), a), replicated=True
    ),
    Collective(
        "pmax",
        lambda x: jax.lax.pmax(x, "i"),
        lambda a: _to_all(a.max(0), a),
        replicated=True,
        differentiable=False,
    ),
    Collective(
        "pmin",
        lambda x: jax.lax.pmin(x, "i"),
        lambda a: _to_all(a.min(0), a),
        replicated=True,
        differentiable=False,
    ),
    Collective(
        "all-gather",
        lambda x: jax.lax.all_gather(x, "i"),
        lambda a: _to_all(a, a),
        replicated=True,
    ),
    Collective(
        "all-gather-tiled",
        lambda x: jax.lax.all_gather(x, "i", tiled=True),
        lambda a: _to_all(a.reshape(-1, *a.shape[2:]), a),
        replicated=True,
    ),
    Collective("psum-scatter", lambda x: jax.lax.psum_scatter(x, "i"), lambda a: a.sum(0)),
    Collective(
        "psum-scatter-tiled",
        lambda x: jax.lax.psum_scatter(x, "i", tiled=True),
        lambda a: a.sum(0)[:, None],
    ),
    Collective("ppermute", lambda x: jax.lax.ppermute(x, "i", _ring()), lambda a: np.roll(a, 1, 0)),
    Collective("ppermute-partial", lambda x: jax.lax.ppermute(x, "i", [(0, 1)]), _first_to_second),
    Collective(
        "all-to-all", lambda x: jax.lax.all_to_all(x, "i", 0, 0), lambda a: a.swapaxes(0, 1)
    ),
    Collective(
        "all-to-all-tiled",
        lambda x: jax.lax.all_to_all(x, "i", 0, 1, tiled=True),
        lambda a: a.swapaxes(0, 1).reshape(len(a), 1, -1),
    ),
    Collective(
        "axis-index",
        lambda x: jax.lax.axis_index("i"),
        lambda a: np.arange(len(a), dtype=np.int32),
    ),
    Collective(
        "axis-size",
        lambda x: jax.numpy.int32(jax.lax.axis_size("i")),
        lambda a: np.full(len(a), len(a), np.int32),
        replicated=True,
    ),
    Collective(
        "psum-of-one",
        lambda x: jax.numpy.int32(jax.lax.psum(1, "i")),
        lambda a: np.full(len(a), len(a), np.int32),
        replicated=True,
    ),
)

BY_NAME = {one.name: one for one in COLLECTIVES}

REFUSED = "require replication which can't be statically inferred"
PMAP_ONLY_CHECKED = not_applicable("check_vma is an option of shard_map")


def blocks(place: Place) -> Rows:
    """The stack of all devices' blocks, one row per device in each."""
    return place.all_rows(place.topology.devices, WIDTH)


def run(impl: Any, cluster: Any, name: str, out_axes: int | None, check_vma: bool) -> None:
    """One collective over the mesh's axis, twice."""
    one = BY_NAME[name]
    function = impl.map(one.apply, out_axes=out_axes, check_vma=check_vma)
    given = impl.given(cluster.rows(cluster.topology.devices, WIDTH))
    if out_axes == 0 or one.replicated:
        cluster.twice(function, given)
    else:  # replicas that differ are no array to compare: look at what is shown of them
        cluster.twice(lambda: np.asarray(function(given)))


def declare(one: Collective) -> None:
    """The three clauses of one collective."""

    def stacked(place: Place) -> Any:
        return place.mine(one.model(blocks(place)))

    def first(place: Place) -> Any:
        return stacked(place)[0]

    def what(
        suffix: str,
        claim: str,
        title: str,
        out_axes: int | None,
        check_vma: bool,
        expect: dict[str, Expectation],
    ) -> None:
        clause(
            f"rewriting.collectives.{one.name}.{suffix}",
            claim=claim,
            needs=devices(2),
            topologies=ONE_AND_FOUR,
            parameters={"name": one.name, "out_axes": out_axes, "check_vma": check_vma},
            title=f"{one.name.replace('-', ' ')}: {title}.",
            expect=expect,
        )(run)

    per_device = returns(stacked, text=f"each device's own result of {one.name}")
    single = returns(first, text=f"the result of {one.name} on this process's first device")
    whole: Expectation = every(single, REPLICATED) if one.replicated else single
    what(
        "stacked",
        "migrate-pmap.collectives-over-mesh-axes",
        "every device has the model's value",
        0,
        True,
        dict.fromkeys(IMPLEMENTATIONS, per_device),
    )
    what(
        "replicated",
        "migrate-pmap.out-specs-consistent",
        "an output declared replicated is taken"
        if one.replicated
        else "an output declared replicated is inconsistent, and shard_map refuses it",
        None,
        True,
        {
            LEGACY_PMAP: single,
            NEW_PMAP: single,
            SHARD_MAP: whole if one.replicated else raises(ValueError, REFUSED, otherwise=first),
        },
    )
    what(
        "replicated-unchecked",
        "migrate-pmap.out-specs-consistent",
        "an output declared replicated under check_vma=False is one device's, as pmap's",
        None,
        False,
        {LEGACY_PMAP: PMAP_ONLY_CHECKED, NEW_PMAP: PMAP_ONLY_CHECKED, SHARD_MAP: whole},
    )


for _one in COLLECTIVES:
    declare(_one)
