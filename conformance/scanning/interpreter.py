"""Statements and functions of a scanned program, evaluated abstractly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import libcst as cst

from conformance.scanning import expressions, imports
from conformance.scanning.events import Event
from conformance.scanning.project import Project
from conformance.scanning.scopes import Scope
from conformance.scanning.sources import Source, UnreadableError
from conformance.scanning.values import (
    UNKNOWN,
    Argument,
    Array,
    Class,
    Constant,
    Function,
    Imported,
    Instance,
    Items,
    Mapped,
    Reference,
    Value,
    merged,
)

MOST_STEPS = 60_000  # statements and expressions of one file, with what is evaluated again
MOST_ROUNDS = 4  # of a loop over a display: each item by itself
MOST_CALLS = 5  # functions of the program within each other
_OF_IMPORTS = ("ImportError", "ModuleNotFoundError")
_IMPORTS = 3  # modules that import modules
AGAIN = "called again"  # of a method: it finds what an earlier call has left in its instance
INIT_METHODS = ("__init__", "setup", "__post_init__")

Body = cst.BaseSuite | Sequence[cst.BaseStatement]


@dataclass(slots=True)
class Frame:
    """A function that is being evaluated: what it returned so far."""

    returns: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class Interpreter:
    """Evaluates files of a project, and notes the events."""

    project: Project
    wanted: frozenset[str] = frozenset()  # the qualified names that rules are about
    events: dict[tuple[object, ...], tuple[Source, Event]] = field(default_factory=dict)
    under: tuple[str, ...] = ()  # the transformations and maps in which the code runs
    within: tuple[str, ...] = ()  # loops, and calls of a tree map
    frames: list[Frame] = field(default_factory=list)
    scanned: Source | None = None
    steps: int = 0
    running: list[cst.CSTNode] = field(default_factory=list)
    done: set[int] = field(default_factory=set)  # functions that were evaluated
    known: dict[tuple[object, ...], Value] = field(default_factory=dict)
    of_metadata: bool = False  # an attribute is looked up that a deleted array has as well
    _importing: int = 0

    # Files

    def scan(self, source: Source) -> Scope:
        """Evaluate a file, and each function of it that nothing calls."""
        self.steps, self.scanned = 0, source
        scope = self.top_level(source)
        self._uncalled(scope)
        return scope

    def top_level(self, source: Source) -> Scope:
        """The scope of a module; evaluated once. UnreadableError where it cannot be parsed."""
        known = self.project.scopes.get(source.module)
        if known is not None:
            return known
        scope = self.project.scopes[source.module] = Scope(source)
        with self.fresh():
            self.block(scope, source.tree.body)
        return scope

    def exported(self, module: str) -> Scope | None:
        """The scope of another module of the tree; None where it is not worth it or unreadable."""
        source = self.project.source(module)
        if source is None or self._importing >= _IMPORTS:
            return None
        self._importing += 1
        steps, self.steps = self.steps, 0
        try:
            return self.top_level(source)
        except UnreadableError:
            return None
        finally:
            self._importing -= 1
            self.steps = steps

    def looked_up(self, value: Value) -> Value:
        """What an imported name is, if it is one."""
        for _ in range(_IMPORTS):
            if not isinstance(value, Imported):
                break
            exported = self.exported(value.module)
            value = exported.variables.get(value.name, UNKNOWN) if exported else UNKNOWN
        return UNKNOWN if isinstance(value, Imported) else value

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Run what follows under no transformation, as a module's top level does."""
        before = self.under, self.within, self.running, self.frames
        self.under, self.within, self.running, self.frames = (), (), [], [Frame()]
        try:
            yield
        finally:
            self.under, self.within, self.running, self.frames = before

    def _uncalled(self, scope: Scope) -> None:
        """Evaluate the functions and methods that were not, of arguments that are not known."""
        seen: set[int] = set()
        for value in list(scope.variables.values()):
            if isinstance(value, Class) and value.scope.source is scope.source:
                if id(value.node) not in seen:
                    seen.add(id(value.node))
                    self.methods(value)
            elif isinstance(value, Function) and value.scope.source is scope.source:
                self.alone(value)

    def methods(self, of: Class) -> None:
        """Evaluate the methods of a class, those first that set its instances' attributes."""
        instance = expressions.instance_of(self, of)
        some = [value for value in of.scope.variables.values() if isinstance(value, Function)]
        bound = [
            Function(node=one.node, scope=one.scope, owner=instance)
            for one in sorted(some, key=lambda f: f.name not in INIT_METHODS)
        ]
        for one in bound:
            self.alone(one)
        if any(isinstance(value, Array) for value in instance.attributes.values()):
            self._again(bound)

    def _again(self, methods: Sequence[Function]) -> None:
        """Evaluate methods with the attributes that others have set, and each with its own."""
        known = self.known
        for one in (*methods, *(each for method in methods for each in (method, method))):
            self.known = {}
            if one.name not in INIT_METHODS:
                with self.fresh():
                    self.within = (AGAIN,)
                    self.call(one, ())
        self.known = known

    def alone(self, function: Function) -> None:
        """Evaluate a function that nothing called, unless it was evaluated."""
        if id(function.node) in self.done:
            return
        with self.fresh():
            self.call(function, ())

    def note(
        self,
        scope: Scope,
        kind: str,
        node: cst.CSTNode,
        attributes: Mapping[str, frozenset[str]],
        captures: Mapping[str, cst.CSTNode] | None = None,
    ) -> None:
        """Note an event; of a name that no rule is about there is none."""
        if "name" in attributes and self.wanted.isdisjoint(attributes["name"]):
            return
        event = Event(kind, node, attributes, captures or {})
        self.events.setdefault(event.key(), (scope.source, event))

    # Functions

    def call(
        self,
        function: Function,
        arguments: Sequence[Argument],
        under: tuple[str, ...] = (),
    ) -> Value:
        """What a function of the program returns; its body is evaluated with these arguments."""
        node = function.node
        if node in self.running or len(self.running) >= MOST_CALLS or self.exhausted():
            return UNKNOWN
        values = tuple(expressions.fingerprint(one.value) for one in arguments)
        if self._elsewhere(function) and not any(map(expressions.is_followed, arguments)):
            values = ()
        place = id(node), id(function.owner), self.under, under, self.within, values
        if place in self.known:
            return self.known[place]
        self.done.add(id(node))
        scope = Scope(function.scope.source, parent=function.scope)
        self._bind(scope, function, arguments)
        before = self.under
        self.under += under
        self.running.append(node)
        self.frames.append(Frame())
        try:
            if isinstance(node, cst.Lambda):
                result = expressions.evaluate(self, scope, node.body)
            else:
                self.block(scope, node.body)
                result = self._returned()
            self._nested(scope)
        finally:
            self.frames.pop()
            self.running.pop()
            self.under = before
        self.known[place] = result
        return result

    def _elsewhere(self, function: Function) -> bool:
        """Whether a function is of another file than the one that is scanned."""
        return function.scope.source is not self.scanned

    def exhausted(self) -> bool:
        return self.steps > MOST_STEPS

    def _returned(self) -> Value:
        found: Value | None = None
        for one in self.frames[-1].returns:
            found = merged(found, one)
        return found or UNKNOWN

    def _nested(self, scope: Scope) -> None:
        """Evaluate the functions that were defined within and that nothing called."""
        for value in list(scope.variables.values()):
            if not isinstance(value, Function) or value.scope is not scope:
                continue
            if id(value.node) not in self.done and value.node not in self.running:
                self.call(value, ())

    def _bind(self, scope: Scope, function: Function, arguments: Sequence[Argument]) -> None:
        """Give the parameters their values."""
        params = function.node.params
        names = [one.name.value for one in (*params.posonly_params, *params.params)]
        for one in (*params.posonly_params, *params.params, *params.kwonly_params):
            default = UNKNOWN
            if one.default is not None and isinstance(one.default, cst.Name):
                default = function.scope.value(one.default.value)
            scope.variables[one.name.value] = default if is_callable(default) else UNKNOWN
        for star in (params.star_arg, params.star_kwarg):
            if isinstance(star, cst.Param):
                scope.variables[star.name.value] = UNKNOWN
        rest: list[Value] = []
        given = list(arguments)
        if function.owner is not None:
            given.insert(0, Argument(function.owner, cst.Name("self")))
        position = 0
        for argument in given:
            if argument.star:
                break
            if argument.keyword:
                if argument.keyword in scope.variables:
                    scope.variables[argument.keyword] = argument.value
            elif position < len(names):
                scope.variables[names[position]] = argument.value
                position += 1
            else:
                rest.append(argument.value)
        if rest and isinstance(params.star_arg, cst.Param):
            scope.variables[params.star_arg.name.value] = Items(items=tuple(rest))

    # Statements

    def block(self, scope: Scope, body: Body) -> bool:
        """Evaluate statements in order; whether they end by return, raise, continue or break."""
        if isinstance(body, cst.SimpleStatementSuite):
            return any(self.small(scope, one) for one in body.body)
        statements = body.body if isinstance(body, cst.BaseSuite) else body
        for one in statements:
            if self.exhausted():
                return False
            self.steps += 1
            if self.statement(scope, one):  # type: ignore[arg-type]
                return True
        return False

    def statement(self, scope: Scope, node: cst.BaseStatement) -> bool:
        """Evaluate a statement; whether nothing after it is reached."""
        match node:
            case cst.SimpleStatementLine():
                return any(self.small(scope, one) for one in node.body)
            case cst.FunctionDef():
                self._define(scope, node)
            case cst.ClassDef():
                self._define_class(scope, node)
            case cst.If():
                return self._if(scope, node)
            case cst.For():
                self._for(scope, node)
            case cst.While():
                expressions.evaluate(self, scope, node.test)
                self._loop(scope, node.body)
                if node.orelse is not None:
                    self.block(scope, node.orelse.body)
            case cst.With():
                return self._with(scope, node)
            case cst.Try() | cst.TryStar():
                return self._try(scope, node)
            case cst.Match():
                expressions.evaluate(self, scope, node.subject)
                before = dict(scope.variables)
                states = [before]
                for case in node.cases:
                    scope.variables = dict(before)
                    self.block(scope, case.body)
                    states.append(scope.variables)
                scope.taken_over(*states)
        return False

    def small(self, scope: Scope, node: cst.BaseSmallStatement) -> bool:
        """Evaluate a simple statement; whether nothing after it is reached."""
        match node:
            case cst.Expr():
                value = expressions.evaluate(self, scope, node.value)
                if "set mesh" in value.tags:  # for all that follows
                    self.under = (*self.under, "set mesh")
                expressions.dropped(self, scope, node, value)
            case cst.Assign():
                value = expressions.evaluate(self, scope, node.value)
                for target in node.targets:
                    self.assign(scope, target.target, value)
            case cst.AnnAssign():
                expressions.evaluate(self, scope, node.annotation.annotation)
                if node.value is not None:
                    self.assign(scope, node.target, expressions.evaluate(self, scope, node.value))
            case cst.AugAssign():
                expressions.evaluate(self, scope, node.target)
                expressions.evaluate(self, scope, node.value)
                self.assign(scope, node.target, UNKNOWN)
            case cst.Return():
                value = (
                    expressions.evaluate(self, scope, node.value)
                    if node.value is not None
                    else Constant(value=None)
                )
                self.frames[-1].returns.append(value)
                return True
            case cst.Raise():
                if node.exc is not None:
                    expressions.evaluate(self, scope, node.exc)
                return True
            case cst.Assert():
                expressions.evaluate(self, scope, node.test)
            case cst.Import():
                imports.import_modules(self, scope, node)
            case cst.ImportFrom():
                imports.import_names(self, scope, node)
            case cst.Del():
                if isinstance(node.target, cst.Name):
                    scope.variables.pop(node.target.value, None)
            case cst.Break() | cst.Continue():
                return True
        return False

    def assign(self, scope: Scope, target: cst.BaseExpression, value: Value) -> None:
        """Give a name, an attribute or several names a value."""
        match target:
            case cst.Name():
                scope.variables[target.value] = value
            case cst.Attribute():
                owner = expressions.evaluate(self, scope, target.value)
                if isinstance(owner, Instance):
                    owner.attributes[target.attr.value] = value
                expressions.set_attribute(self, scope, target, owner, value)
            case cst.Tuple() | cst.List():
                names = [one.value for one in target.elements]
                starred = any(isinstance(one, cst.StarredElement) for one in target.elements)
                parts = expressions.unpacked(self, scope, target, value, len(names), starred)
                for name, part in zip(names, parts, strict=True):
                    self.assign(scope, name, part)
            case cst.Subscript():
                expressions.evaluate(self, scope, target.value)

    def _define(self, scope: Scope, node: cst.FunctionDef) -> None:
        value: Value = Function(node=node, scope=scope)
        for one in reversed(node.decorators):
            value = expressions.decorated(self, scope, one, value)
        scope.variables[node.name.value] = value

    def _define_class(self, scope: Scope, node: cst.ClassDef) -> None:
        bases = tuple(expressions.evaluate(self, scope, one.value) for one in node.bases)
        value = Class(
            node=node,
            scope=Scope(scope.source, parent=scope, of_class=True),
            bases=bases,
        )
        self.block(value.scope, node.body)
        scope.variables[node.name.value] = value

    def _if(self, scope: Scope, node: cst.If) -> bool:
        test = expressions.evaluate(self, scope, node.test)
        before = dict(scope.variables)
        outer = self.within
        # What follows is run by one process alone.
        if "process 0" in test.tags:
            self.within = (*outer, "one process")
        ended = self.block(scope, node.body)
        self.within = outer
        after = scope.variables
        scope.variables = before
        other = False
        if isinstance(node.orelse, cst.If):
            other = self._if(scope, node.orelse)
        elif node.orelse is not None:
            if "process 0" in test.tags:
                self.within = (*outer, "one process")
            other = self.block(scope, node.orelse.body)
            self.within = outer
        ways = [state for state, end in ((after, ended), (scope.variables, other)) if not end]
        scope.taken_over(*(ways or [after]))
        return ended and other and node.orelse is not None

    def _for(self, scope: Scope, node: cst.For) -> None:
        iterable = expressions.evaluate(self, scope, node.iter)
        each = expressions.iterated(self, scope, node.iter, iterable, "iterate")
        rounds: Sequence[Value] = (each, each)
        display = isinstance(iterable, Items) and iterable.kind in ("tuple", "list")
        if display and isinstance(iterable, Items) and 1 < len(iterable.items) <= MOST_ROUNDS:
            rounds = iterable.items
        self._loop(scope, node.body, node.target, rounds)
        if node.orelse is not None:
            self.block(scope, node.orelse.body)

    def _loop(
        self,
        scope: Scope,
        body: cst.BaseSuite,
        target: cst.BaseExpression | None = None,
        rounds: Sequence[Value] = (UNKNOWN, UNKNOWN),
    ) -> None:
        """Evaluate a loop's body twice or more: a round begins with what the last one left."""
        before = dict(scope.variables)
        outer = self.within
        self.within = (*outer, "loop") if "loop" not in outer else outer
        for each in rounds:
            if target is not None:
                self.assign(scope, target, each)
            self.block(scope, body)
        self.within = outer
        scope.taken_over(scope.variables, before)

    def _with(self, scope: Scope, node: cst.With) -> bool:
        entered: list[str] = []
        for item in node.items:
            value = expressions.evaluate(self, scope, item.item)
            if item.asname is not None:
                self.assign(scope, item.asname.name, value)
            entered += [tag for tag in ("set mesh",) if tag in value.tags]
        before = self.under
        self.under = (*before, *entered)
        ended = self.block(scope, node.body)
        self.under = before
        return ended

    def _try(self, scope: Scope, node: cst.Try | cst.TryStar) -> bool:
        before = dict(scope.variables)
        within = self.within
        self.within = (*within, "try") if node.handlers and "try" not in within else within
        ended = self.block(scope, node.body)
        self.within = within
        states = [scope.variables] if not ended else []
        for handler in node.handlers:
            scope.variables = dict(before)
            self.within = (*within, "fallback") if _is_of_imports(handler) else within
            if not self.block(scope, handler.body):
                states.append(scope.variables)
        self.within = within
        scope.taken_over(*(states or [before]))
        for extra in (node.orelse, node.finalbody):
            if extra is not None:
                ended = self.block(scope, extra.body) or ended
        return ended and not states


def _is_of_imports(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    """Whether a handler is for an import that is not there."""
    caught = handler.type
    names = [one.value for one in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
    return any(isinstance(one, cst.Name) and one.value in _OF_IMPORTS for one in names)


def is_callable(value: Value) -> bool:
    """Whether a default value is worth keeping for a parameter that is not given."""
    return isinstance(value, Mapped | Function | Reference)
