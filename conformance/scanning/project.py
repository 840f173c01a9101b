"""The scanned tree: which module is in which file, and what other modules export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from conformance.scanning.scopes import Scope
from conformance.scanning.sources import Source


@dataclass(eq=False)
class Project:
    """The files of the tree by dotted name, read on demand."""

    paths: dict[str, str]  # dotted name -> path as reported
    read: Callable[[str], Source | None]
    worth_reading: frozenset[str] = frozenset()  # dotted names that may export what matters
    scopes: dict[str, Scope] = field(default_factory=dict)
    sources: dict[str, Source | None] = field(default_factory=dict)

    @cached_property
    def _by_tail(self) -> dict[str, list[str]]:
        """Return dotted names by each of their endings: a tree's root is not always on the path."""
        found: dict[str, list[str]] = {}
        for name in self.paths:
            parts = name.split(".")
            for at in range(len(parts)):
                found.setdefault(".".join(parts[at:]), []).append(name)
        return found

    def module(self, name: str) -> str | None:
        """Return the name within the tree of an imported module; None if it is outside."""
        first = name.split(".")[0]
        if first in _NEVER_INSIDE:
            return None
        if name in self.paths:
            return name
        found = self._by_tail.get(name, [])
        # One file of that name: `package.module` of a tree that was named by a folder above it.
        return found[0] if len(found) == 1 and first not in _FOREIGN else None

    def source(self, module: str) -> Source | None:
        """Return the file of a module of the tree; None if it cannot be read."""
        if module not in self.sources:
            self.sources[module] = self.read(module)
        return self.sources[module]


# A file of one's own that is called so is not what an import of this name means.
_FOREIGN = frozenset({"flax", "optax", "chex", "haiku", "os", "sys"})
# Whatever the tree has, these are the packages that the rules are about.
_NEVER_INSIDE = frozenset({"jax", "numpy", "functools"})
