"""Describe a value that a probe returned, as a plain record. Runs in the worker.

Nothing here may communicate: a global array is described by the shards that this process holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.observation import to_json

MOST_ELEMENTS = 4096  # of one array that travel as values; larger ones are described without


def describe(value: object) -> dict[str, Any]:
    """Return the pytree's structure and one record per leaf (`observation.Leaf`)."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(value)
    return {
        "tree": str(tree),
        "leaves": [_leaf(jax.tree_util.keystr(path), leaf) for path, leaf in leaves],
    }


def sharding_record(sharding: Any) -> dict[str, Any]:
    """Return a sharding's fields: type, spec, mesh, device order, memory kind."""
    record: dict[str, Any] = {"type": type(sharding).__name__}
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None:
        record["mesh"] = {str(name): size for name, size in mesh.shape.items()}
        record["axis_types"] = [str(t) for t in getattr(mesh, "axis_types", None) or ()]
        record["devices"] = [d.id for d in mesh.devices.flat]
        record["spec"] = [_axis(part) for part in sharding.spec]
    elif hasattr(sharding, "devices") and not callable(sharding.devices):  # PmapSharding
        record["devices"] = [d.id for d in np.asarray(sharding.devices).flat]
        record["spec"] = str(sharding.sharding_spec)
    else:
        record["devices"] = sorted(d.id for d in sharding.device_set)
    record["memory_kind"] = getattr(sharding, "memory_kind", None)
    return record


def sharding_types(value: object) -> list[str]:
    """Return the type name of every array leaf's sharding; `traced` for a tracer, else the leaf's
    type.
    """
    return [_sharding_type(leaf) for leaf in jax.tree_util.tree_leaves(value)]


def _sharding_type(leaf: object) -> str:
    if isinstance(leaf, jax.core.Tracer):
        return "traced"
    if isinstance(leaf, jax.Array):
        return type(leaf.sharding).__name__
    return type(leaf).__name__


def _axis(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, tuple):
        return [str(p) for p in part]
    return str(part)


def _leaf(path: str, leaf: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"path": path, "type": type(leaf).__name__}
    if isinstance(leaf, jax.Array):
        return record | _array(leaf)
    if isinstance(leaf, np.ndarray | np.generic | bool | int | float | complex):
        array = np.asarray(leaf)
        return record | _facts(array.shape, array.dtype) | _values(array)
    return record | {"shape": [], "dtype": "", "text": repr(leaf)}


def _array(array: Any) -> dict[str, Any]:
    if array.is_deleted():
        return _facts(array.shape, array.dtype) | {"text": "deleted", "deleted": True}
    record = _facts(array.shape, array.dtype) | {
        "weak_type": bool(getattr(array, "weak_type", False)),
        "committed": bool(getattr(array, "_committed", True)),
        "sharding": sharding_record(array.sharding),
        "fully_addressable": array.is_fully_addressable,
    }
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    if array.size > MOST_ELEMENTS:
        return record | {"text": f"{array.size} elements, too many to carry"}
    if array.is_fully_addressable:
        # Shard by shard, because fetching the whole would be one more thing under test.
        local = _box(array.shape, [(s.index, np.asarray(s.data)) for s in array.addressable_shards])
    else:
        shards = [(s.index, np.asarray(s.data)) for s in array.addressable_shards]
        local = _box(array.shape, shards) if shards else None
    if local is None:
        return record | {"text": "shards that tile no box"}
    return record | _values(local)


def _facts(shape: Iterable[int], dtype: object) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": str(dtype)}


def _values(array: NDArray[Any]) -> dict[str, Any]:
    if array.size > MOST_ELEMENTS:
        return {"text": f"{array.size} elements, too many to carry"}
    return {"values": to_json(array), "local_shape": list(array.shape)}


def _box(
    shape: tuple[int, ...], shards: list[tuple[tuple[slice, ...], NDArray[Any]]]
) -> NDArray[Any] | None:
    """Return the box that the shards tile; None if they leave a hole, do not fit, or disagree."""
    spans = [
        [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        for index, _ in shards
    ]
    low = [min(span[d][0] for span in spans) for d in range(len(shape))]
    high = [max(span[d][1] for span in spans) for d in range(len(shape))]
    box = np.zeros([b - a for a, b in zip(low, high, strict=True)], shards[0][1].dtype)
    filled = np.zeros(box.shape, bool)
    for span, (_, data) in zip(spans, shards, strict=True):
        if data.shape != tuple(b - a for a, b in span):
            return None  # a shard of another shape than its index says
        at = tuple(slice(a - at0, b - at0) for (a, b), at0 in zip(span, low, strict=True))
        if filled[at].all() and filled[at].size and not np.array_equal(box[at], data):
            return None
        box[at], filled[at] = data, True
    return box if filled.all() else None
