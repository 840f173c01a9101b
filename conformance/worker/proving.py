"""Observe which of JAX's mapping primitives a call traces, as proof of what ran.

A jitted function does not show what is in it, and a probe's label proves nothing. So the primitives
by which JAX's maps are traced are taken from a traced program, if their names are public, and each
use of them is recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

SHARD_MAP_PRIMITIVE = "shard_map"


class Traced:
    """The names of the mapping primitives that were traced, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def since(self, mark: int) -> set[str]:
        """Return those traced after `len(names)` was `mark`."""
        return set(self.names[mark:])


@functools.cache
def watched() -> Traced:
    """Return this process's record; from the first call on its primitives are watched."""
    traced = Traced()
    primitive = _primitive()
    if primitive is not None:
        primitive.bind = _noting(primitive.bind, primitive.name, traced)
    return traced


def _primitive() -> Any:
    """Return shard_map's primitive, taken from a traced program; None if this JAX has no
    jax.shard_map.
    """
    if not hasattr(jax, "shard_map"):
        return None
    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()[:1]), ("i",))
    function = jax.shard_map(lambda x: x, mesh=mesh, in_specs=spec("i"), out_specs=spec("i"))
    equations = jax.make_jaxpr(function)(np.zeros(1, np.float32)).jaxpr.eqns
    return next(one.primitive for one in equations if one.primitive.name == SHARD_MAP_PRIMITIVE)


def _noting(bind: Callable[..., Any], name: str, traced: Traced) -> Callable[..., Any]:
    @functools.wraps(bind)
    def noted(*args: Any, **params: Any) -> Any:
        traced.names.append(name)
        return bind(*args, **params)

    return noted
