"""A clause's program as text: the row and the probe that it goes into, and all that they use.

The text runs by itself in a Python that has jax: the code is taken from this project's modules,
name by name, and what a probe is given (`probing.plain`) method by method. Nothing is imported to
find it; the modules are read.
"""

from __future__ import annotations

import ast
import copy
import functools
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.catalogue.clause import Clause
from conformance.catalogue.names import IMPLEMENTATIONS, NEW_PMAP
from conformance.catalogue.reading import (
    OURS,
    Module,
    Place,
    ProgramError,
    attributes_of,
    bindings,
    globals_of,
    is_module,
    members_of,
    module_of,
    rows,
    tables,
    undeclared,
)
from conformance.catalogue.topology import Topology

SECTIONS = "conformance.sections."  # all that is not a section's is what probes are given
STARTS_PYTHON = "conformance.probing.child"  # its programs run as modules of this project

_SETUP = """\
from conformance.catalogue.topology import Topology
from conformance.probing.plain import PlainCluster, PlainImplementation

impl = PlainImplementation(IMPLEMENTATION)
cluster = PlainCluster(Topology(PROCESSES, DEVICES), PROCESS)
"""
_SET_UP = ("IMPLEMENTATION", "PROCESSES", "DEVICES", "PROCESS", "impl", "cluster")

Import = tuple[str, str | None]


def program(clause: Clause, implementation: str = NEW_PMAP, topology: str | None = None) -> str:
    """The text of a clause's program, to be run under one implementation in one topology.

    The first of the clause's own topologies where none is named. ProgramError where the probe is
    not a function at the top of its module.
    """
    return _Text(clause).build(implementation, Topology.parse(topology or clause.topologies[0]))


class _Text:
    """Puts one program together."""

    def __init__(self, clause: Clause) -> None:
        self._clause = clause
        self._pieces: dict[Place, str] = {}  # in the order in which they must stand
        home, name = clause.probe.__module__, clause.probe.__name__
        self._taken = {name, *clause.rows, *_SET_UP}  # names that mean something in the text
        self._renamed = {Place(home, name): name}
        # A name of the text, and what it imports: a module, or what of it.
        self._imports: dict[str, Import] = {"os": ("os", None), "jax": ("jax", None)}
        self._classes: dict[Place, set[str]] = {}  # and those of their methods that are called
        self._attributes: set[str] = set()
        self._needs_project = False

    def build(self, implementation: str, topology: Topology) -> str:
        clause = self._clause
        home = module_of(clause.probe.__module__)
        setup = [node for node in _setup() if isinstance(node, ast.Assign)]
        chosen = self._row_lines(home)
        main = self._piece(home, home.bound[clause.probe.__name__])
        for node in setup:
            self._use(_setup_module(), node)
        self._choose_methods()
        given = "".join(f", {name}={name}" for name in clause.rows)
        parts = [
            self._head(implementation, topology),
            "\n".join(["from __future__ import annotations\n", *self._import_lines()]),
            _where(implementation, topology),
            self._titled("What a probe is given", sections=False),
            self._titled("What the program uses", sections=True),
            f"# The program\n\n\n{pasteable(main)}",
            "\n".join(self._piece(_setup_module(), node) for node in setup),
            "\n".join([*chosen, f"{clause.probe.__name__}(impl, cluster{given})"]),
        ]
        return "\n\n\n".join(filter(None, parts)) + "\n"

    def _titled(self, title: str, *, sections: bool) -> str:
        chosen = [
            pasteable(text)
            for place, text in self._pieces.items()
            if text and place.module.startswith(SECTIONS) is sections
        ]
        return "\n\n\n".join([f"# {title}", *chosen]) if chosen else ""

    def _head(self, implementation: str, topology: Topology) -> str:
        clause = self._clause
        lines = [f"# {clause.id}: {clause.title}"]
        if self._needs_project:
            lines.append("# It starts Pythons of its own that run modules of this project.")
        what = "process" if topology.processes == 1 else "processes"
        lines.append(
            f"# As {implementation}, in {topology.processes} {what} with "
            f"{topology.devices_per_process} devices"
            + (": start it once for each PROCESS." if topology.processes > 1 else ".")
        )
        return "\n".join(lines)

    def _import_lines(self) -> list[str]:
        lines = []
        for name, (source, attribute) in self._imports.items():
            line = f"import {source}" if attribute is None else f"from {source} import {attribute}"
            lines.append(line if name in (source, attribute) else f"{line} as {name}")
        return sorted(lines, key=lambda line: (not line.startswith("import "), line))

    def _row_lines(self, home: Module) -> list[str]:
        """`form = Form(...)` for each table, and all that the rows use."""
        lines = []
        for name, found in rows(self._clause).items():
            if found is not None:
                module = module_of(found.module)
                lines.append(f"{name} = {self._piece(module, found.node)}")
                continue
            text = self._piece(home, tables(self._clause)[name])
            lines.append(f"{name} = ({text})[{self._clause.parameters[name]!r}]")
        return lines

    def _piece(self, module: Module, node: ast.AST, *, indented: bool = False) -> str:
        """A node's text in the program, once all that it uses has a place there."""
        renamed = self._use(module, node)
        if not renamed:
            return module.text(node)
        text = _text_renamed(undeclared(node), tuple(renamed.items()))
        return textwrap.indent(text, "    ") if indented else text

    def _use(self, module: Module, node: ast.AST) -> dict[str, str]:
        """Place what a node uses; the names that are others in the text than in the module."""
        bare = undeclared(node)
        self._attributes |= attributes_of(bare)
        said = {}
        for name in sorted(globals_of(bare)):
            ours = _own_module(module, name)
            if ours is None or ours == STARTS_PYTHON:
                said[name] = self._name(module, name)
                continue
            for member in members_of(bare, name):
                said[f"{name}.{member}"] = self._name(module_of(ours), member)
        return {name: other for name, other in said.items() if name != other}

    def _name(self, module: Module, name: str) -> str:
        """What a name of a module is called in the text, where its meaning then stands."""
        if name in module.bound:
            return self._define(Place(module.name, name))
        if name not in module.imported:
            return name  # a builtin, or bound by the program's own setup
        source, attribute = module.imported[name]
        if _first(source) == OURS and attribute is None:
            raise ProgramError(f"{module.name} imports {source} as a whole")
        if _first(source) == OURS and _own_module(module, name) is None:
            return self._name(module_of(source), attribute or "")
        self._needs_project |= f"{source}.{attribute}" == STARTS_PYTHON
        if attribute is None and name == _first(source):  # the package, by a module in it
            self._imports |= {name: (name, None), source: (source, None)}
            return name
        if self._imports.get(name) != (source, attribute):
            name = self._free(name, module.name)
        self._imports[name] = (source, attribute)
        return name

    def _free(self, name: str, module: str) -> str:
        """The name, or one made of it that means nothing in the text yet."""
        while name in self._taken or name in self._imports:
            name = f"{module.rsplit('.', 1)[-1]}_{name}"
        return name

    def _define(self, place: Place) -> str:
        if place in self._renamed:
            return self._renamed[place]
        module = module_of(place.module)
        node = module.bound[place.name]
        for one in bindings(node):  # an assignment may bind several
            self._renamed[Place(place.module, one)] = self._free(one, place.module)
            self._taken.add(self._renamed[Place(place.module, one)])
        name = self._renamed[place]
        if isinstance(node, ast.ClassDef):
            # Its methods are chosen once it is known which are called.
            self._classes[place] = set()
            for part in (*node.bases, *node.decorator_list, *map(_value, node.body)):
                if part is not None:
                    self._use(module, part)
            self._pieces[place] = ""
            return name
        text = self._piece(module, node)
        said = {one: self._renamed[Place(place.module, one)] for one in bindings(node)}
        self._pieces[place] = _called(text, said)
        return name

    def _choose_methods(self) -> None:
        """Each class with those of its methods that anything in the text calls."""
        grown = True
        while grown:
            grown = False
            for place, chosen in list(self._classes.items()):
                module = module_of(place.module)
                for member in _members(module.bound[place.name]):
                    name = getattr(member, "name", "")
                    if name in chosen or not (name.startswith("__") or name in self._attributes):
                        continue
                    chosen.add(name)
                    self._use(module, member)
                    grown = True
        for place, chosen in self._classes.items():
            module = module_of(place.module)
            node = module.bound[place.name]
            assert isinstance(node, ast.ClassDef)
            head = [f"@{self._piece(module, one)}" for one in node.decorator_list]
            bases = ", ".join(self._piece(module, one) for one in node.bases)
            head.append(f"class {node.name}({bases}):" if bases else f"class {node.name}:")
            kept = [
                self._piece(module, one, indented=True)
                for one in node.body
                if not isinstance(one, ast.FunctionDef) or one.name in chosen
            ]
            text = "\n".join([*head, *kept])
            self._pieces[place] = _called(text, {node.name: self._renamed[place]})


@functools.cache
def pasteable(text: str) -> str:
    """Code without empty lines within a block and with one-line docstrings, for any session."""
    tree = ast.parse(text)
    lines = text.split("\n")
    drop: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            said = node.body[0]
            if said.end_lineno and said.end_lineno > said.lineno:
                lines[said.lineno - 1] += '"""'
                drop.update(range(said.lineno, said.end_lineno))
    return "\n".join(one for at, one in enumerate(lines) if at not in drop and one.strip())


@functools.cache
def _text_renamed(node: ast.AST, names: tuple[tuple[str, str], ...]) -> str:
    return ast.unparse(_Renamed(dict(names)).inside(copy.deepcopy(node)))


def _called(text: str, said: Mapping[str, str]) -> str:
    """A definition's text under other names."""
    if all(name == other for name, other in said.items()):
        return text
    return ast.unparse(_Renamed(said).visit(ast.parse(text)))


def _own_module(module: Module, name: str) -> str | None:
    """The module of ours that a name of a module stands for; None where it is something else."""
    source, attribute = module.imported.get(name, ("", None))
    whole = f"{source}.{attribute}"
    ours = name not in module.bound and _first(source) == OURS and attribute is not None
    return whole if ours and is_module(whole) else None


def _value(member: ast.stmt) -> ast.AST | None:
    """What a class's body evaluates at once: the value of an assignment, no method."""
    return (
        getattr(member, "value", None) if isinstance(member, ast.Assign | ast.AnnAssign) else None
    )


@functools.cache
def _setup() -> tuple[ast.stmt, ...]:
    return tuple(ast.parse(_SETUP).body)


@functools.cache
def _setup_module() -> Module:
    imported: dict[str, tuple[str, str | None]] = {
        alias.name: (node.module or "", alias.name)
        for node in _setup()
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return Module("setup", tuple(_SETUP.split("\n")), {}, imported)


def _where(implementation: str, topology: Topology) -> str:
    others = " or ".join(f'"{name}"' for name in IMPLEMENTATIONS if name != implementation)
    lines = [
        f'IMPLEMENTATION = "{implementation}"  # or {others}',
        f"PROCESSES, DEVICES = {topology.processes}, {topology.devices_per_process}",
        'PROCESS = int(os.environ.get("PROCESS", "0"))',
        'jax.config.update("jax_platforms", "cpu")',
        'jax.config.update("jax_num_cpu_devices", DEVICES)',
        "if PROCESSES > 1:",
        '    jax.config.update("jax_cpu_collectives_implementation", "gloo")',
        '    jax.distributed.initialize("localhost:12357", PROCESSES, PROCESS)',
    ]
    return "\n".join(lines)


class _Renamed(ast.NodeTransformer):
    """Names as they are called in the text; `module.name` too, where the module is ours."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        said = self._names.get(ast.unparse(node))
        return self.generic_visit(node) if said is None else ast.Name(said, node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.name = self._names.get(node.name, node.name)
        return self.inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        node.bases = [self.visit(one) for one in node.bases]
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.body = [self.inside(one) for one in node.body]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self.inside(node)

    def inside(self, node: Any) -> Any:
        """The node under its own name, as methods and fields keep theirs."""
        if isinstance(node, ast.Assign | ast.AnnAssign):
            if node.value is not None:
                node.value = self.visit(node.value)
            return node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            return self.visit(node)
        given = node.args
        given.defaults = [self.visit(one) for one in given.defaults]
        given.kw_defaults = [one and self.visit(one) for one in given.kw_defaults]
        hidden = {one.arg for one in _parameters(given)}
        seen = {name: said for name, said in self._names.items() if _first(name) not in hidden}
        if isinstance(node, ast.Lambda):
            node.body = _Renamed(seen).visit(node.body)
        else:
            node.decorator_list = [self.visit(one) for one in node.decorator_list]
            node.body = [_Renamed(seen).visit(one) for one in node.body]
        return node


def _parameters(given: ast.arguments) -> Iterator[ast.arg]:
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from filter(None, (given.vararg, given.kwarg))


def _first(name: str) -> str:
    return name.split(".", 1)[0]


def _members(node: ast.AST) -> list[ast.stmt]:
    assert isinstance(node, ast.ClassDef)
    return node.body
