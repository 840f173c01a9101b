"""Perturbations of what a step returned: values, shape, dtype, placement, container."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.mutation.perturbing.case import (
    Case,
    Change,
    Perturbation,
    in_all_processes,
    in_one_process,
)
from conformance.spec import aspects
from conformance.spec.observation import Leaf, Step

Array = NDArray[Any]

LEAST_PART = 0.5  # of a value that is added to it, beyond what any tolerance allows


def _of_last_leaf(change: Callable[[Leaf], Leaf | None]) -> Change:
    """Apply a change to the last leaf only: an expectation must look at all of them."""

    def perturb_step(case: Case, step: Step, beside: Step | None) -> Step | None:
        for at in reversed(range(len(step.leaves))):
            changed = change(step.leaves[at])
            if changed is not None:
                return replace(step, leaves=(*step.leaves[:at], changed, *step.leaves[at + 1 :]))
        return None

    return perturb_step


def _of_all_leaves(change: Callable[[Leaf], Leaf | None]) -> Change:
    def perturb_step(case: Case, step: Step, beside: Step | None) -> Step | None:
        changed = [change(leaf) for leaf in step.leaves]
        if not any(one is not None for one in changed):
            return None
        both = zip(step.leaves, changed, strict=True)
        return replace(step, leaves=tuple(old if new is None else new for old, new in both))

    return perturb_step


def _valued(change: Callable[[Array], Array | None]) -> Callable[[Leaf], Leaf | None]:
    """Replace the values by others of the same shape and dtype."""

    def change_leaf(leaf: Leaf) -> Leaf | None:
        if leaf.local is None or not leaf.local.size:
            return None
        with np.errstate(all="ignore"):
            new = change(leaf.local)
        if new is None:
            return None
        new = new.astype(leaf.local.dtype)
        return None if _same(leaf.local, new) else replace(leaf, local=new)

    return change_leaf


def _same(old: Array, new: Array) -> bool:
    return old.shape == new.shape and old.tobytes() == new.tobytes()


def _wide(array: Array) -> Array:
    """Return the array in a type that NumPy can compute with."""
    return array if array.dtype.kind in "iubc" else array.astype(np.float64)


def _one_element(array: Array) -> Array:
    if array.dtype.kind == "b":
        new = array.copy()
        new.flat[-1] = not new.flat[-1]
        return new
    new = _wide(array).copy()
    more = max(1.0, float(abs(new.flat[-1])) * LEAST_PART) if np.isfinite(new.flat[-1]) else 1.0
    new.flat[-1] = new.flat[-1] + (int(more) if new.dtype.kind in "iu" else more)
    if not np.isfinite(array.flat[-1]):
        new.flat[-1] = 0
    return new


def _negated(array: Array) -> Array | None:
    if array.dtype.kind in "ub":
        return ~array
    return -_wide(array) if array.any() else None  # zeros are as they were


def _nan(array: Array) -> Array | None:
    if array.dtype.kind in "iub":
        return None
    new = _wide(array).copy()
    new.flat[-1] = np.nan
    return new


def _of_the_other(case: Case, step: Step, beside: Step | None) -> Step | None:
    """Return the step with the values of another process, if they differ in value only."""
    if beside is None or len(beside.leaves) != len(step.leaves):
        return None
    changed = False
    leaves = []
    for mine, other in zip(step.leaves, beside.leaves, strict=True):
        new = mine
        if mine.local is not None and other.local is not None:
            alike = mine.local.shape == other.local.shape
            if alike and not _same(mine.local, other.local):
                new, changed = replace(mine, local=other.local), True
        leaves.append(new)
    return replace(step, leaves=tuple(leaves)) if changed else None


def _lost(leaf: Leaf) -> Leaf | None:
    return None if leaf.local is None else replace(leaf, local=None, text="deleted")


def _leaf_more(case: Case, step: Step, beside: Step | None) -> Step | None:
    return replace(step, leaves=(*step.leaves, step.leaves[-1])) if step.leaves else None


def _dimension_more(leaf: Leaf) -> Leaf | None:
    if leaf.local is None:
        return None
    return replace(leaf, shape=(1, *leaf.shape), local=leaf.local[None])


def _row_fewer(leaf: Leaf) -> Leaf | None:
    if leaf.local is None or not leaf.local.ndim or not leaf.local.shape[0]:
        return None
    return replace(leaf, shape=(leaf.shape[0] - 1, *leaf.shape[1:]), local=leaf.local[:-1])


def _dtype(leaf: Leaf) -> Leaf | None:
    if leaf.local is None:
        return None
    new = {"float32": "float64", "int32": "int64"}.get(leaf.dtype, "float32")
    with np.errstate(all="ignore"):
        local = _wide(leaf.local)
        local = (local.real if local.dtype.kind == "c" else local).astype(new)
    return replace(leaf, dtype=new, local=local)


def _sharding(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Change:
    def change_leaf(leaf: Leaf) -> Leaf | None:
        new = None if leaf.sharding is None else change(dict(leaf.sharding))
        return None if new is None else replace(leaf, sharding=new)

    return _of_last_leaf(change_leaf)


def _type(sharding: dict[str, Any]) -> dict[str, Any]:
    single = sharding["type"] == "SingleDeviceSharding"
    if single:
        more = {"type": "NamedSharding", "mesh": {"i": 1}, "spec": ["i"]}
        return sharding | more
    kept = {key: value for key, value in sharding.items() if key not in ("mesh", "spec")}
    return kept | {"type": "SingleDeviceSharding", "devices": sharding["devices"][:1]}


def _spec(sharding: dict[str, Any]) -> dict[str, Any] | None:
    """Return the sharding replicated in place of split, or split in place of replicated."""
    spec = sharding.get("spec")
    if not isinstance(spec, list):
        return None
    other = [] if any(spec) else [next(iter(sharding.get("mesh") or {"i": 1}))]
    return sharding | {"spec": other}


def _devices(sharding: dict[str, Any]) -> dict[str, Any] | None:
    devices = sharding["devices"]
    return sharding | {"devices": devices[::-1]} if len(devices) > 1 else None


def _memory_kind(sharding: dict[str, Any]) -> dict[str, Any]:
    # Before JAX 0.7.1 a CPU's default memory is unpinned_host, which "device" names from then on.
    defaults = (None, "device", "unpinned_host")
    other = dict.fromkeys(defaults, "pinned_host")
    return sharding | {"memory_kind": other.get(sharding.get("memory_kind"), "device")}


def _key(leaf: Leaf) -> Leaf | None:
    """Return typed keys as raw key data, and numbers as typed keys."""
    if leaf.local is None or leaf.sharding is None:
        return None
    is_key = leaf.dtype.startswith("key<")
    return replace(leaf, dtype=str(leaf.local.dtype) if is_key else "key<fry>")


def _container(other: Callable[[str], str]) -> Change:
    """Put the same leaves into another container."""

    def perturb_step(case: Case, step: Step, beside: Step | None) -> Step | None:
        if step.tree is None or step.raised is not None:
            return None
        tree = other(step.tree)
        return None if tree == step.tree else replace(step, tree=tree)

    return perturb_step


_TREE = "PyTreeDef("
_BRACKETS = {"(": "[", "[": "(", "{": "["}
_CLOSING = {"(": ")", "[": "]"}


def _other_sequence(tree: str) -> str:
    """Return a list for a tuple, a tuple for a list, a list for a dict, or a list around a leaf."""
    inner = tree.removeprefix(_TREE).removesuffix(")")
    if inner[:1] not in _BRACKETS:
        return f"{_TREE}[{inner}])"
    opened = _BRACKETS[inner[0]]
    return f"{_TREE}{opened}{inner[1:-1]}{_CLOSING[opened]})"


def _registered(kind: str) -> Callable[[str], str]:
    """Put a named tuple or a dataclass around the same leaves."""
    return lambda tree: f"{_TREE}CustomNode({kind}, [{', '.join('*' * tree.count('*'))}]))"


def _uncommitted(leaf: Leaf) -> Leaf | None:
    return None if leaf.committed is None else replace(leaf, committed=not leaf.committed)


def _is_sharded(leaf: Leaf) -> bool:
    return leaf.sharding is not None and leaf.sharding["type"] != "SingleDeviceSharding"


def _weak(leaf: Leaf) -> Leaf | None:
    return None if leaf.weak_type is None else replace(leaf, weak_type=not leaf.weak_type)


def _both(name: str, aspect: str, change: Change) -> Iterator[Perturbation]:
    yield in_one_process(f"{name}, in one process", aspect, change)
    yield in_all_processes(f"{name}, in all", aspect, change)


VALUES: dict[str, Change] = {
    "values: one element is larger": _of_last_leaf(_valued(_one_element)),
    "values: negated": _of_all_leaves(_valued(_negated)),
    "values: zero": _of_all_leaves(_valued(np.zeros_like)),
    "values: one NaN": _of_last_leaf(_valued(_nan)),
    "values: another process's": _of_the_other,
    "values: lost": _of_last_leaf(_lost),
}
OTHERS: dict[str, tuple[str, Change]] = {
    "shape: a dimension more": (aspects.SHAPE, _of_last_leaf(_dimension_more)),
    "shape: a row fewer": (aspects.SHAPE, _of_last_leaf(_row_fewer)),
    "shape: a leaf more": (aspects.SHAPE, _leaf_more),
    "dtype": (aspects.DTYPE, _of_last_leaf(_dtype)),
    "weak type": (aspects.WEAK_TYPE, _of_last_leaf(_weak)),
    "sharding: type": (aspects.SHARDING_TYPE, _sharding(_type)),
    "sharding: spec": (aspects.SPEC, _sharding(_spec)),
    "sharding: order of devices": (aspects.DEVICES, _sharding(_devices)),
    "dtype: typed keys": (aspects.DTYPE, _of_last_leaf(_key)),
    "committed": (aspects.COMMITTED, _of_last_leaf(_uncommitted)),
    "container: another sequence": (aspects.CONTAINER, _container(_other_sequence)),
    "container: a named tuple": (aspects.CONTAINER, _container(_registered("namedtuple[Other]"))),
    "container: a dataclass": (aspects.CONTAINER, _container(_registered("Other[()]"))),
}
# Of every step, whatever its expectation claims.
OF_EVERY_STEP: dict[str, Change] = {
    "weak type: where none was": _of_last_leaf(
        lambda leaf: None if leaf.weak_type else _weak(leaf)
    ),
    "committed: not, though sharded": _of_last_leaf(
        lambda leaf: _uncommitted(leaf) if _is_sharded(leaf) and leaf.committed else None
    ),
    "memory kind": _sharding(_memory_kind),
}

PERTURBATIONS = (
    *(one for name, change in VALUES.items() for one in _both(name, aspects.VALUES, change)),
    *(in_one_process(name, aspect, change) for name, (aspect, change) in OTHERS.items()),
    *(in_one_process(name, aspects.ENDING, change) for name, change in OF_EVERY_STEP.items()),
)
