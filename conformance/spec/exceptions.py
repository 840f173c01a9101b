"""The base classes of exceptions, by which `except` catches them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping

_TYPE_ERROR = frozenset({"TypeError"})
_JAX_TYPE_ERROR = _TYPE_ERROR | {"JAXTypeError"}
_RUNTIME_ERROR = frozenset({"RuntimeError"})
_OF_EVERY_EXCEPTION = frozenset({"Exception", "BaseException"})

# Of the exceptions outside Python's own that were seen: beside those of every exception, the base
# classes in every release. One with a leading underscore is private, and left out.
BASES: Mapping[str, frozenset[str]] = {
    # JAX
    "ConcretizationTypeError": _JAX_TYPE_ERROR,
    "DuplicateSpecError": frozenset(),
    "IndivisibleError": frozenset({"ValueError"}),
    "JAXIndexError": frozenset({"IndexError", "LookupError"}),
    "JAXTypeError": _TYPE_ERROR,
    "JaxRuntimeError": _RUNTIME_ERROR,
    "JaxprTypeError": _TYPE_ERROR,
    "KeyReuseError": _JAX_TYPE_ERROR,
    "NonConcreteBooleanIndexError": frozenset({"JAXIndexError", "IndexError", "LookupError"}),
    "ShardingTypeError": frozenset(),
    "StoreException": frozenset(),
    "TracerArrayConversionError": _JAX_TYPE_ERROR,
    "TracerBoolConversionError": _JAX_TYPE_ERROR | {"ConcretizationTypeError"},
    "TracerIntegerConversionError": _JAX_TYPE_ERROR,
    "UnexpectedTracerError": _JAX_TYPE_ERROR,
    "XlaRuntimeError": _RUNTIME_ERROR,
    # libraries
    "InvalidInputException": frozenset(),
    "ScopeParamShapeError": frozenset({"FlaxError"}),
    # programs of clauses
    "ChildError": _RUNTIME_ERROR,
    "Deadlock": _RUNTIME_ERROR,
    "JobError": _RUNTIME_ERROR,
}


def expected_bases(type_name: str) -> frozenset[str] | None:
    """Return the base classes of an exception by its type's name; None if it is not known."""
    known = BASES.get(type_name)
    if known is not None:
        return known | _OF_EVERY_EXCEPTION
    python = getattr(builtins, type_name, None)
    if isinstance(python, type) and issubclass(python, BaseException):
        return frozenset(one.__name__ for one in python.__mro__[1:-1])
    return None


def public_bases(bases: Iterable[str]) -> frozenset[str]:
    """Return the recorded base classes that `except` may name."""
    return frozenset(one for one in bases if not one.startswith("_"))
