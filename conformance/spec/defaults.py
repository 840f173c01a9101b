"""What the clauses of a module have in common, declared once.

    nested = Defaults(claim="migrate-pmap.context-mesh", needs=devices(4))

    @nested.clause("errors.context-mesh.unnamed", expect=everywhere(returns(model)))
    def unnamed(impl, cluster):
        ...

Each clause may declare the same keyword itself, which then counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from conformance.spec.clause import Declared, Probe, clause
from conformance.spec.family import declare_rows

_OF_FAMILIES = {*Declared.__annotations__, "only"}


class Defaults:
    """Keywords of `clause` and `family` for several of them.

    In a family a field of the rows that is named like a keyword counts for more than a default.
    ValueError if a keyword is none of theirs.
    """

    def __init__(self, **declared: Any) -> None:
        unknown = sorted(declared.keys() - _OF_FAMILIES)
        if unknown:
            raise ValueError(
                f"no clause declares {', '.join(unknown)}: see conformance.spec.clause"
            )
        self._declared = declared

    def but(self, **declared: Any) -> Defaults:
        """Return these defaults, except for the keywords that are given."""
        return Defaults(**self._declared | declared)

    def clause(self, id: str, **declared: Unpack[Declared]) -> Callable[[Probe], Probe]:
        """Declare a clause: `clause` with these defaults."""
        together: Any = self._declared | declared
        return clause(id, **together)

    def family(self, id: str, **declared: Any) -> Callable[[Probe], Probe]:
        """Declare a family: `family` with these defaults; further keywords are its tables."""
        arguments = {name: value for name, value in declared.items() if name in _OF_FAMILIES}
        tables = {name: value for name, value in declared.items() if name not in _OF_FAMILIES}
        defaults = dict(self._declared)
        also = arguments.pop("also", defaults.pop("also", ()))
        defaults.pop("also", None)
        return declare_rows(id, tables, arguments, also=also, defaults=defaults)
