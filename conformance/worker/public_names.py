"""The public names of one JAX release: modules, what they define, arguments, options.

Run in a target's Python, in two ways. Asked for no names, it lists what this release has; asked for
those that any release has, it looks each of them up.

A name is public as JAX marks it: no part of it begins with an underscore, and its module defines
it, imports it `as` itself, or has it in `__all__` or among its deprecations. So imports that a
module needs for itself are left out, and so are members of classes: what a class has says little
of what its instances have. Arguments are listed under one name of their function.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import jax

ROOTS = ("jax", "jaxlib")
# What a lookup finds: it is there, it is not, or nothing can be found out on this machine.
THERE, GONE, UNKNOWN = "there", "gone", "unknown"
MODULE, NAME, ARGUMENT, OPTION = "module", "name", "argument", "option"
_TESTS = ("test", "tests")


class Listed(NamedTuple):
    """A public name with its kind; `owner` is the function that has an argument."""

    kind: str
    owner: str
    name: str


class Looked(NamedTuple):
    """What a release does when one of the names is used."""

    state: str
    warning: str = ""
    error: str = ""


@dataclass(slots=True)
class Modules:
    """The public modules, and why others cannot be imported, by their names."""

    imported: dict[str, ModuleType] = field(default_factory=dict)
    failed: dict[str, ImportError] = field(default_factory=dict)
    warned: dict[str, str] = field(default_factory=dict)


def walk(name: str, found: Modules) -> Modules:
    """Import a module and all public ones below it."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = importlib.import_module(name)
    except ImportError as error:
        found.failed[name] = error
        return found
    found.imported[name] = module
    found.warned[name] = _first_line(caught)
    for one in sorted(pkgutil.iter_modules(getattr(module, "__path__", ())), key=lambda m: m.name):
        if not one.name.startswith("_") and one.name not in _TESTS:
            walk(f"{name}.{one.name}", found)
    return found


def defined(module: ModuleType) -> set[str]:
    """Return the public names of a module by its source; all of `dir` if it has none."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        return {name for name in dir(module) if not name.startswith("_")}
    deprecated = getattr(module, "_deprecations", ())
    found = {*(getattr(module, "__all__", None) or ()), *_bound(tree.body)}
    found |= set(deprecated) if isinstance(deprecated, Mapping) else set()
    return {name for name in found if not name.startswith("_")}


def _bound(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements define or import as themselves, within `if` and `try` as well."""
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (one for target in node.targets for one in _targets(target))
        elif isinstance(node, ast.AnnAssign):
            yield from _targets(node.target)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _imported(node)
        else:
            for part in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, part, ())
                for one in inner if isinstance(inner, list) else ():
                    yield from _bound(one.body if isinstance(one, ast.ExceptHandler) else [one])


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _targets(one)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for one in node.names:
        if one.name == "*":
            source = sys.modules.get(getattr(node, "module", None) or "")
            yield from getattr(source, "__all__", None) or dir(source)
        elif one.asname is not None and one.asname == one.name.rpartition(".")[2]:
            yield one.asname


def listing(modules: Modules) -> dict[str, Any]:
    """Return what this release has: the names, groups of names of one object, what is not
    importable.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = dict(_values(modules))
    shortest: dict[int, str] = {}
    same: dict[int, list[str]] = {}
    for name, value in sorted(values.items(), key=lambda one: (one[0].count("."), one[0])):
        if _of_jax(value):
            shortest.setdefault(id(value), name)
            same.setdefault(id(value), []).append(name)
    names = [Listed(MODULE, "", name) for name in modules.imported]
    names += (Listed(NAME, "", name) for name in values if name not in modules.imported)
    for owner in shortest.values():
        names += (Listed(ARGUMENT, owner, name) for name in arguments(values[owner]) or ())
    names += (Listed(OPTION, "", name) for name in jax.config.values)
    return {
        "jax": jax.__version__,
        "names": sorted(names),
        "same": sorted(sorted(some) for some in same.values() if len(some) > 1),
        "failed": {name: str(error) for name, error in modules.failed.items() if _lacks(error)},
    }


def _values(modules: Modules) -> Iterator[tuple[str, Any]]:
    for at, module in modules.imported.items():
        for name in sorted(defined(module)):
            try:
                value = getattr(module, name)
            except AttributeError:
                if name in getattr(module, "_deprecations", ()):
                    yield f"{at}.{name}", None
                continue
            if not isinstance(value, ModuleType):
                yield f"{at}.{name}", value


def _of_jax(value: object) -> bool:
    """Return whether an object is JAX's own: a class, a function, or an instance of a class of
    JAX.
    """
    named = value if isinstance(value, (type, FunctionType)) else type(value)
    return str(getattr(named, "__module__", "")).partition(".")[0] in ROOTS


def arguments(function: Any) -> tuple[str, ...] | None:
    """Return the arguments that can be passed by name; None if any can be, or none is known."""
    if isinstance(function, type) or not callable(function):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(one.name for one in parameters if one.kind in named)


def look(modules: Modules, one: Listed) -> Looked:
    """Use a name in this release; return the first line of what JAX warns or raises."""
    if one.kind == MODULE:
        return _look_module(modules, one.name)
    if one.kind == OPTION:
        return _look_option(one.name)
    if one.kind == ARGUMENT:
        return _look_argument(_owner(modules, one.owner), one.name)
    at, _, name = one.name.rpartition(".")
    if at not in modules.imported and _is_attribute(modules, at, name):
        return Looked(THERE)
    if at in modules.failed:
        found = _look_module(modules, at)
        return found if found.state == UNKNOWN else Looked(GONE, error=found.error)
    if at not in modules.imported:
        return _look_module(modules, at)
    return _attribute(modules.imported[at], name)[0]


def _is_attribute(modules: Modules, at: str, name: str) -> bool:
    """Return whether a name is reached without an import of what it is in, which is no module."""
    above, _, last = at.rpartition(".")
    owner = _attribute(modules.imported[above], last)[1] if above in modules.imported else None
    return owner is not None and hasattr(owner, name)


def _look_module(modules: Modules, name: str) -> Looked:
    if name in modules.imported:
        return Looked(THERE, modules.warned[name])
    error = modules.failed.get(name)
    if error is None:
        try:
            importlib.import_module(name)
            return Looked(THERE)
        except ImportError as raised:
            error = raised
    if _lacks(error):
        return Looked(UNKNOWN)
    return Looked(GONE, error=f"{type(error).__name__}: {_line(str(error))}")


def _lacks(error: ImportError) -> bool:
    """Return whether an import fails because of what is not installed beside JAX."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing.partition(".")[0] not in ROOTS if missing else "install" in str(error)


def _owner(modules: Modules, name: str) -> Any:
    """A function or class by its name; None where there is none."""
    at, _, last = name.rpartition(".")
    return _attribute(modules.imported[at], last)[1] if at in modules.imported else None


def _attribute(owner: Any, name: str) -> tuple[Looked, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = getattr(owner, name)
        except ValueError:  # of what exists in a context of MLIR alone
            return Looked(UNKNOWN), None
        except AttributeError as error:
            return Looked(GONE, error=f"AttributeError: {_line(str(error))}"), None
    return Looked(THERE, _first_line(caught)), value


def _look_argument(function: Any, name: str) -> Looked:
    known = arguments(function)
    if known is None:
        return Looked(UNKNOWN)
    if name in known:
        return Looked(THERE)
    try:
        function(**{name: None})  # no function begins with an argument that it does not have
    except TypeError as error:
        return Looked(GONE, error=f"TypeError: {_line(str(error))}")
    except Exception:  # a decorator of its own answers first
        return Looked(GONE)
    return Looked(UNKNOWN)


def _look_option(name: str) -> Looked:
    """Set an option to the value that it has."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            jax.config.update(name, jax.config.values.get(name))
        except (AttributeError, ValueError, TypeError) as error:
            if name in jax.config.values:
                return Looked(THERE)
            return Looked(GONE, error=f"{type(error).__name__}: {_line(str(error))}")
    return Looked(THERE, _first_line(caught))


def _first_line(caught: Iterable[warnings.WarningMessage]) -> str:
    for one in caught:
        if issubclass(one.category, (DeprecationWarning, FutureWarning, UserWarning)):
            return f"{one.category.__name__}: {_line(str(one.message))}"
    return ""


def _line(text: str) -> str:
    return " ".join(text.split())


def main(output: str, asked: str) -> None:
    """Write what this release has, or what it does with the names that the file `asked` has."""
    modules = walk("jax", Modules())
    names = [Listed(*one) for one in json.loads(Path(asked).read_text("utf-8"))]
    if not names:
        found: Any = listing(modules)
    else:
        # JAX warns of a name once in a process: names come before the arguments of what they name.
        looked = {
            one: look(modules, one) for one in sorted(names, key=lambda n: n.kind == ARGUMENT)
        }
        found = [looked[one] for one in names]
    Path(output).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
