"""The container of a result: tuples, lists, dicts, named tuples, None, as JAX flattens them.

A model returns its leaves in the container in which the mapped function returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEAF = "*"


@dataclass(frozen=True, slots=True)
class Node:
    """A registered container type outside Python's own, with its leaves; `text` is JAX's notation.

    `text` has a `*` for each leaf, as in `CustomNode(Point[()], [*, *])`.
    """

    text: str
    leaves: Sequence[Any]


def flattened(value: Any) -> tuple[list[Any], str]:
    """Return the leaves of a value in JAX's order, and its structure in JAX's notation."""
    leaves: list[Any] = []
    return leaves, f"PyTreeDef({_structure(value, leaves)})"


def _structure(value: Any, leaves: list[Any]) -> str:
    """Return the structure of a value, appending its leaves to `leaves`."""
    if value is None:
        return "None"
    if isinstance(value, Node):
        leaves += value.leaves
        return value.text
    if isinstance(value, dict):
        inner = (f"{key!r}: {_structure(value[key], leaves)}" for key in sorted(value))
        return f"{{{', '.join(inner)}}}"
    if not isinstance(value, list | tuple):
        leaves.append(value)
        return LEAF
    within = ", ".join([_structure(one, leaves) for one in value])
    if isinstance(value, list):
        return f"[{within}]"
    if hasattr(value, "_fields"):
        return f"CustomNode(namedtuple[{type(value).__name__}], [{within}])"
    return f"({within},)" if len(value) == 1 else f"({within})"
