"""The identity of a clause's program: a digest of the code that runs.

The digest covers the syntax trees of the probe, of its rows, and of everything that they use in our
own modules; of classes, the methods that are called by name. Comments, docstrings, annotations,
line breaks, the declaration and the module's name do not count; nor does what a clause expects,
which may change while the program stays.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from conformance.catalogue.declarations import rows, tables_of
from conformance.catalogue.modules import (
    Module,
    Place,
    attributes_of,
    module_of,
    places_used,
    tree_of,
    undeclared,
)
from conformance.spec.clause import Clause

DIGITS = 16  # of a digest

# What a probe is given: of these classes the methods that it calls are part of its program.
GIVEN = (
    Place("conformance.worker.plain", "PlainMapped"),
    Place("conformance.worker.plain", "PlainImplementation"),
    Place("conformance.worker.plain", "PlainCluster"),
    Place("conformance.spec.topology", "Place"),
)
# What judges and declares is no part of what runs.
NOT_RUN = ("conformance.judging.", "conformance.catalogue.", "conformance.spec.")

Part = tuple[Module, ast.AST]  # a piece of code, and the module in which it stands

# A worker's own take the place of these: they print.
_PRINTING = {"step", "note"}


class Reached(NamedTuple):
    """A program's code: syntax trees, the attributes' names in it, and the places that it uses."""

    nodes: list[ast.AST]
    names: frozenset[str]
    places: frozenset[Place]


def program_digest(clause: Clause) -> str:
    """Return the digest of a clause's program: equal if the same code runs on the same rows.

    ValueError if the probe is not a function at the top of its module.
    """
    code = reached(clause)
    trees = {tree_of(node) for node in (*code.nodes, *_callable_methods(code.names))}
    text = "\n".join([json.dumps(clause.parameters, sort_keys=True), *sorted(trees)])
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def reached(clause: Clause) -> Reached:
    """Return the code that a clause's program uses, but for what its arguments do.

    ValueError if the probe is not a function at the top of its module.
    """
    home = module_of(clause.probe.__module__)
    name = clause.probe.__name__
    if name not in home.bound:
        raise ValueError(
            f"{clause.id}: its probe {name} is not at the top level of {home.name}; define it there"
        )
    probe = home, undeclared(home.bound[name])
    made = _row_makers(clause)
    used: frozenset[str] = frozenset()
    while True:
        start = (probe, *made, *_row_parts(clause, used))
        nodes = [node for _, node in start]
        places = list(_closure(start, used))
        for place in places:
            node = _bound(place)
            nodes += [] if node is None else [_running(node, used)]
        more = used.union(*map(attributes_of, nodes))
        if more == used:
            return Reached(nodes, used, frozenset(places))
        used = more


def _row_makers(clause: Clause) -> list[Part]:
    """Return what makes the rows: the classes of the written rows, else the whole table."""
    found: list[Part] = []
    tables = tables_of(clause)
    home = module_of(clause.probe.__module__)
    for name, row in rows(clause).items():
        if row is None:
            found += [(home, tables[name])] if name in tables else []
        elif isinstance(row.node, ast.Call):
            found.append((module_of(row.module), row.node.func))
        else:
            found.append((module_of(row.module), row.node))
    return found


def _row_parts(clause: Clause, used: frozenset[str]) -> list[Part]:
    """Return the arguments of the written rows, without fields that no code of the program reads.

    Expectations are often such a field, and so are titles and topologies.
    """
    found: list[Part] = []
    for name, row in rows(clause).items():
        if row is None or not isinstance(row.node, ast.Call):
            continue
        value = clause.rows[name]
        module = module_of(row.module)
        unread = {one.name for one in fields(value)} - used if is_dataclass(value) else set()
        parameters = _parameters(module, row.node.func, value)
        for at, argument in enumerate(row.node.args):
            if isinstance(argument, ast.Starred):  # and which those after it are is not written
                rest = row.node.args[at:]
                found += [(module, a.value if isinstance(a, ast.Starred) else a) for a in rest]
                break
            if at >= len(parameters) or parameters[at] not in unread:
                found.append((module, argument))
        for keyword in row.node.keywords:
            if keyword.arg not in unread:
                found.append((module, ast.copy_location(_keyword(keyword), row.node)))
    return found


def _parameters(module: Module, called: ast.expr, row: object) -> list[str]:
    """Return the names of what a row is called with, by position: of its class, or of the helper
    that makes it.
    """
    place = module.place_of(called.id) if isinstance(called, ast.Name) else None
    maker = None if place is None else _bound(place)
    if isinstance(maker, ast.FunctionDef):
        return [one.arg for one in (*maker.args.posonlyargs, *maker.args.args)]
    if isinstance(maker, ast.ClassDef) and is_dataclass(row):
        return [one.name for one in fields(row)]
    return []


@functools.cache
def _keyword(keyword: ast.keyword) -> ast.expr:
    """Return a keyword argument as the expression `dict(name=value)`."""
    return ast.fix_missing_locations(
        ast.Call(ast.copy_location(ast.Name("dict", ast.Load()), keyword), [], [keyword])
    )


def _closure(start: Iterable[Part], used: frozenset[str]) -> Iterator[Place]:
    """Yield once each place that some code uses, directly or not."""
    seen: set[Place] = set()
    todo = [place for module, node in start for place in _used(module, node)]
    while todo:
        place = todo.pop()
        if place in seen or f"{place.module}.".startswith(NOT_RUN):
            continue
        seen.add(place)
        yield place
        node = _bound(place)
        if node is not None:
            todo += _used(module_of(place.module), _running(node, used))


def _running(node: ast.AST, used: frozenset[str]) -> ast.AST:
    """Return a definition without the methods of a class that no used name can call."""
    if not isinstance(node, ast.ClassDef):
        return undeclared(node)
    methods = (one.name for one in node.body if isinstance(one, ast.FunctionDef))
    kept = frozenset(name for name in methods if name in used or name.startswith("__"))
    return _with_methods(node, kept)


@functools.cache
def _with_methods(node: ast.ClassDef, names: frozenset[str]) -> ast.ClassDef:
    bare = copy.copy(node)
    kept = [one for one in node.body if not isinstance(one, ast.FunctionDef) or one.name in names]
    bare.body = kept or [ast.copy_location(ast.Pass(), node)]
    return bare


def _used(module: Module, node: ast.AST) -> tuple[Place, ...]:
    return places_used(module, undeclared(node))


def _bound(place: Place) -> ast.stmt | None:
    return module_of(place.module).bound.get(place.name)


@functools.cache
def _callable_methods(names: frozenset[str]) -> tuple[ast.stmt, ...]:
    """Return the methods of a probe's arguments that these names may call, directly or not."""
    found: dict[ast.stmt, None] = {}
    known = names - _PRINTING
    while True:
        for place in GIVEN:
            node = _bound(place)
            assert isinstance(node, ast.ClassDef), place
            for member in node.body:
                name = getattr(member, "name", "")
                if name in known or name.startswith("__"):
                    found[member] = None
        more = known.union(*map(attributes_of, found)) - _PRINTING
        if more == known:
            return tuple(found)
        known = more
