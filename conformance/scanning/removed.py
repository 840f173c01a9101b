"""Rules on names that JAX removed, made of the published list of them.

The known issue that is about all of them has one rule, of the event `removed`: it stands for a
rule per name that goes away between the two sides. A name of another issue's rule is left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from conformance.catalogue.causes import Cause
from conformance.catalogue.finds import CALL, NAME, REMOVED, Find
from conformance.scanning.findings import Change

SEVERITY = "error"
# A program that catches the failure, or has another name for the JAX that it moves to.
_GUARDED = {"how": frozenset({"tried", "fallback"})}
_SHORTEST = 2  # letters: most files have `.T`, and would have to be evaluated


@dataclass(frozen=True, slots=True)
class Removed:
    """A name that is gone, or an argument of `owner`; `instead` is another name of the object."""

    name: str
    owner: str
    gone: str
    instead: str


def with_removed(
    issues: Iterable[tuple[Cause, Change]], causes: Iterable[Cause], names: Iterable[Removed]
) -> list[tuple[Cause, Change]]:
    """Return the known issues, with that of removed names where any of them goes away."""
    found = list(issues)
    covered = {name for cause, _ in found for find in cause.finds for name in _names(find)}
    finds = tuple(_finds(names, covered))
    for cause in causes:
        if finds and any(find.event == REMOVED for find in cause.finds):
            found.append((replace(cause, finds=finds), Change(SEVERITY, (SEVERITY,))))
    return found


def _finds(names: Iterable[Removed], covered: set[str]) -> Iterator[Find]:
    for one in names:
        if one.owner:
            where = {"name": frozenset({one.owner}), "passes": frozenset({one.name})}
            text = f"`{one.owner}` has no argument `{one.name}`"
            yield Find(CALL, where, says=f"{text} from JAX {one.gone} on")
        elif one.name not in covered and _is_certain(one.name):
            says = f"`{one.name}` is removed in JAX {one.gone}"
            after = f"{{{one.instead}}}" if one.instead else ""
            name = {"name": frozenset({one.name})}
            yield Find(NAME, name, _GUARDED, says=says, after=after)


def _names(find: Find) -> frozenset[str]:
    return find.where.get("name", frozenset()) if find.event == NAME else frozenset()


def _is_certain(name: str) -> bool:
    """Return whether few files have the last part of a name."""
    return len(name.rpartition(".")[2]) > _SHORTEST
