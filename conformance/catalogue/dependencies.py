"""Which of our modules a clause depends on, and which clauses an edit of them affects.

Modules are read as text and compared as syntax trees: a comment or a line break affects no clause.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

from conformance.catalogue.declarations import rows, tables_of
from conformance.catalogue.modules import (
    Module,
    Place,
    bindings,
    globals_of,
    module_of,
)
from conformance.spec.clause import Clause

Old = Callable[
    [str], str | None
]  # a module's earlier text by its name; None where it was not there


def touched(clauses: Iterable[Clause], modules: Iterable[str], old: Old) -> set[str]:
    """Return the ids of the clauses that an edit of `modules` may change."""
    changed: set[Place] = set()
    written: dict[str, frozenset[str]] = {}
    for name in modules:
        before = _statements(old(name) or "")
        now = _statements("\n".join(module_of(name).lines))
        changed |= {Place(name, one) for one in now if now[one] != before.get(one)}
        written[name] = _expressions(old(name) or "")
    return {one.id for one in clauses if _is_touched(one, changed, written)}


def _is_touched(clause: Clause, changed: set[Place], written: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a clause's row is new, or something that its probe or row uses has changed."""
    home = module_of(clause.probe.__module__)
    found = rows(clause)
    declared = tables_of(clause)
    # A row that can be read stands for its table; of the others the whole table is used.
    read = {name: row for name, row in found.items() if row is not None}
    tabled = frozenset[str]().union(*(globals_of(declared[name]) for name in read))
    used = set(_uses(home, clause.probe.__name__, tabled))
    for row in read.values():
        if row.module in written and ast.dump(row.node) not in written[row.module]:
            return True
        for place in _of_node(module_of(row.module), row.node):
            used |= _closure(place)
    return not changed.isdisjoint(used)


def _uses(home: Module, probe: str, without: frozenset[str]) -> Iterator[Place]:
    """Yield what a probe and its declaration use, without the tables, of which each clause has one
    row.
    """
    yield Place(home.name, probe)
    for place in _of_node(home, home.bound[probe]):
        if place.name not in without:
            yield from _closure(place)


@functools.cache
def _closure(start: Place | None) -> frozenset[Place]:
    """Return a name of our modules and all names that it uses, directly or not."""
    if start is None:
        return frozenset()
    seen: set[Place] = set()
    todo = [start]
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        module = module_of(place.module)
        if place.name in module.bound:
            todo += _of_node(module, module.bound[place.name])
    return frozenset(seen)


@functools.cache
def _of_node(module: Module, node: ast.AST) -> tuple[Place, ...]:
    """Return the names of our own modules that a node uses."""
    found = (module.place_of(name) for name in sorted(globals_of(node)))
    return tuple(place for place in found if place is not None)


def _statements(text: str) -> dict[str, str]:
    """Return, for each name that a text binds at top level, the syntax tree of its statement."""
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        for name in bindings(node):
            found[name] = ast.dump(node)
    return found


def _expressions(text: str) -> frozenset[str]:
    return frozenset(
        ast.dump(one) for one in ast.walk(ast.parse(text)) if isinstance(one, ast.expr)
    )
