"""Conditions on the version of JAX: which way a program takes with the JAX that it moves to."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import libcst as cst
from packaging.version import InvalidVersion, Version

from conformance.scanning.imports import dotted
from conformance.scanning.names import FIRST_OF_EVERY_JAX, OF_EVERY_JAX, canonical
from conformance.scanning.scopes import Scope
from conformance.scanning.values import Reference, Value, with_tags

if TYPE_CHECKING:
    from conformance.scanning.interpreter import Interpreter

TAG = "JAX version"
PRESENT = "has "  # before a name, in the words for where code runs: this JAX has it
_NAMES = frozenset(
    {"jax.__version__", "jax.__version_info__", "jax.version.__version__", "jaxlib.__version__"}
)
_OPERATORS: Mapping[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
}
_TEXT = re.compile(r"""["'](\d[\w.]*)["']""")

Release = tuple[int, ...]


def release(text: str) -> Release:
    """Return the release of a version as a tuple; empty if it is none."""
    try:
        return Version(text).release
    except InvalidVersion:
        return ()


def holds(scope: Scope, test: cst.BaseExpression, jax: Release) -> bool | None:
    """Return whether a condition holds in a JAX release; None if it is not about the version."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = holds(scope, test.expression, jax)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        return _both(scope, test, jax)
    if _is_of_every_jax(scope, test):
        return True if jax >= FIRST_OF_EVERY_JAX else None
    if not (jax and isinstance(test, cst.Comparison) and len(test.comparisons) == 1):
        return None
    other = test.comparisons[0]
    compare = _OPERATORS.get(type(other.operator))
    if compare is None:
        return None
    if is_version(scope, test.left) and (bound := _constant(other.comparator)):
        return compare(*_alike(jax, bound))
    if is_version(scope, other.comparator) and (bound := _constant(test.left)):
        return compare(*_alike(bound, jax))
    return None


def _is_of_every_jax(scope: Scope, test: cst.BaseExpression) -> bool:
    """Return whether a condition is that a module has a name which every JAX from 0.7 on has."""
    match test:
        case cst.Call(
            func=cst.Name("hasattr"),
            args=[cst.Arg(owner), cst.Arg(cst.SimpleString() as name)],
        ):
            first, _, rest = f"{dotted(owner)}.{name.raw_value}".partition(".")
            module = scope.value(first)
            full = f"{module.name}.{rest}" if isinstance(module, Reference) else ""
            return canonical(full) in OF_EVERY_JAX
    return False


def _both(scope: Scope, test: cst.BooleanOperation, jax: Release) -> bool | None:
    """Return whether `and` or `or` of two conditions holds; one of them may be enough to know."""
    decides = isinstance(test.operator, cst.Or)
    both = {holds(scope, one, jax) for one in (test.left, test.right)}
    if decides in both:
        return decides
    return None if None in both else not decides


def names_present(
    run: Interpreter, scope: Scope, test: cst.BaseExpression, *, holding: bool = True
) -> tuple[str, ...]:
    """Return a word for each name that JAX has where a condition of `hasattr` holds, or does
    not.
    """
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            return names_present(run, scope, test.expression, holding=not holding)
        case cst.BooleanOperation(operator=cst.And()) if holding:
            return (
                *names_present(run, scope, test.left),
                *names_present(run, scope, test.right),
            )
        case cst.Call(
            func=cst.Name("hasattr"),
            args=[cst.Arg(owner), cst.Arg(cst.SimpleString() as name)],
        ) if holding:
            module = run.evaluate(scope, owner)
            if isinstance(module, Reference):
                full = f"{module.name}.{name.raw_value}"
                return tuple(PRESENT + one for one in dict.fromkeys((full, canonical(full))))
    return ()


def tagged(scope: Scope, node: cst.BaseExpression, value: Value) -> Value:
    """Return the value of an expression, tagged if it is JAX's version."""
    plain = type(value) is Value
    return with_tags(value, TAG) if plain and is_version(scope, node) else value


def is_version(scope: Scope, node: cst.BaseExpression) -> bool:
    """Return whether an expression is JAX's version: as a text, a tuple or an object made of it."""
    match node:
        case cst.Name():
            value = scope.value(node.value)
            return TAG in value.tags or (isinstance(value, Reference) and value.name in _NAMES)
        case cst.Attribute(value=cst.Name() as owner):
            module = scope.value(owner.value)
            return isinstance(module, Reference) and f"{module.name}.{node.attr.value}" in _NAMES
        case cst.Attribute():
            return is_version(scope, node.value)
        case cst.Call():
            method = isinstance(node.func, cst.Attribute) and is_version(scope, node.func.value)
            return method or any(is_version(scope, one.value) for one in node.args)
        case cst.IfExp():
            return is_version(scope, node.body)
        case cst.GeneratorExp() | cst.ListComp():
            return is_version(scope, node.for_in.iter)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice(lower=None))]):
            return is_version(scope, node.value)
    return False


def _constant(node: cst.BaseExpression) -> Release:
    """Return the release that a literal, or a call with one, names; empty if it names none."""
    match node:
        case cst.SimpleString():
            text = _TEXT.fullmatch(node.value)
            return release(text[1]) if text else ()
        case cst.Tuple():
            numbers = [one.value for one in node.elements]
            if all(isinstance(one, cst.Integer) for one in numbers):
                return tuple(int(one.value) for one in numbers if isinstance(one, cst.Integer))
        case cst.Call(args=[cst.Arg(value=inner)]):
            return _constant(inner)
    return ()


def _alike(one: Release, other: Release) -> tuple[Release, Release]:
    """Return two releases with as many numbers: 0.10 is 0.10.0."""
    count = max(len(one), len(other))
    return one + (0,) * (count - len(one)), other + (0,) * (count - len(other))
