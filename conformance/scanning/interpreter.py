"""Abstract evaluation of a scanned program's statements and functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import libcst as cst

from conformance.scanning import calls, classes, expressions, helpers, statements
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
    Donated,
    Function,
    Imported,
    Items,
    Mapped,
    Reference,
    Value,
    fingerprint,
    is_followed,
    merged_all,
)
from conformance.scanning.versions import PRESENT, Release

MOST_STEPS = 60_000  # statements and expressions of one file, with what is evaluated again
MOST_CALLS = 5  # functions of the program within each other
_IMPORTS = 3  # modules that import modules
AGAIN = "called again"  # of a method: it finds what an earlier call has left in its instance
_GUARDS = frozenset({"tried", "fallback"})  # around a name that this JAX may not have
INIT_METHODS = ("__init__", "setup", "__post_init__")


@dataclass(slots=True)
class Frame:
    """A function that is being evaluated: its return values so far."""

    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class Interpreter:
    """Evaluates files of a project, and notes the events."""

    project: Project
    wanted: frozenset[str] = frozenset()  # the qualified names that rules are about
    jax: Release = ()  # of the new side
    events: dict[tuple[object, ...], tuple[Source, Event]] = field(default_factory=dict)
    under: tuple[str, ...] = ()  # the transformations and maps in which the code runs
    within: tuple[str, ...] = ()  # loops, and calls of a tree map
    frames: list[Frame] = field(default_factory=list)
    scanned: Source | None = None
    steps: int = 0
    running: list[cst.CSTNode] = field(default_factory=list)
    done: set[int] = field(default_factory=set)  # functions that were evaluated
    known: dict[tuple[object, ...], Value] = field(default_factory=dict)
    donating: dict[tuple[object, ...], tuple[int, ...]] = field(default_factory=dict)
    donated: tuple[int, ...] = ()  # which arguments the last call of a function donated
    first_outputs: dict[int, frozenset[int]] = field(default_factory=dict)  # by call
    instances: dict[int, Value] = field(default_factory=dict)  # the last one made of each class
    lambdas: dict[int, Function] = field(default_factory=dict)  # by node
    passed_to_map: bool = False  # what is evaluated is an argument of a mapped function
    metadata: str = ""  # the attribute that is looked up, if a deleted array has it as well; `is`
    _importing: int = 0

    # Files

    def scan(self, source: Source) -> Scope:
        """Evaluate a file, and each function of it that nothing calls."""
        self.steps, self.scanned = 0, source
        scope = self.top_level(source)
        self._uncalled(scope)
        for one in list(self.lambdas.values()):
            if one.scope.source is source:
                self.alone(one)
        self.lambdas.clear()
        return scope

    def top_level(self, source: Source) -> Scope:
        """Return the scope of a module, evaluated once; UnreadableError if it cannot be parsed."""
        known = self.project.scopes.get(source.module)
        if known is not None:
            return known
        scope = self.project.scopes[source.module] = Scope(source)
        statements.hoist(scope, source.tree.body)
        with self.fresh():
            statements.block(self, scope, source.tree.body)
        return scope

    def exported(self, module: str) -> Scope | None:
        """Return the scope of another module of the tree; None if irrelevant or unreadable."""
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
        """Resolve an imported name to its value."""
        for _ in range(_IMPORTS):
            if not isinstance(value, Imported):
                break
            exported = self.exported(value.module)
            value = exported.variables.get(value.name, UNKNOWN) if exported else UNKNOWN
        return UNKNOWN if isinstance(value, Imported) else value

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Run what follows outside of any transformation, like a module's top level."""
        before = self.under, self.within, self.running, self.frames
        self.under, self.within, self.running, self.frames = (), (), [], [Frame()]
        try:
            yield
        finally:
            self.under, self.within, self.running, self.frames = before

    def _uncalled(self, scope: Scope) -> None:
        """Evaluate the functions and methods that nothing called, with unknown arguments."""
        seen: set[int] = set()
        # Those last whose parameters are instances: of what others pass to their classes.
        some = sorted(scope.variables.values(), key=lambda one: helpers.takes_instances(self, one))
        for value in some:
            if isinstance(value, Class) and value.scope.source is scope.source:
                if id(value.node) not in seen:
                    seen.add(id(value.node))
                    self.methods(value)
            elif isinstance(value, Function) and value.scope.source is scope.source:
                self.alone(value)

    def methods(self, owner: Class) -> None:
        """Evaluate the methods of a class, first those that set its instances' attributes."""
        instance = classes.instance_of(self, owner)
        some = classes.functions(owner)
        bound = [
            Function(node=one.node, scope=one.scope, owner=instance)
            for one in sorted(some, key=lambda f: f.name not in INIT_METHODS)
        ]
        for one in bound:
            # Others may have called it, on an instance that they made.
            with self.fresh():
                self.call(one, helpers.assumed(self, one))
        self.instances.setdefault(id(owner.node), instance)
        if any(isinstance(value, Array) for value in instance.attributes.values()):
            self._again(bound)

    def _again(self, methods: Sequence[Function]) -> None:
        """Evaluate methods again with the attributes that others have set."""
        known = self.known
        for one in (*methods, *(each for method in methods for each in (method, method))):
            self.known = {}
            if one.name not in INIT_METHODS:
                with self.fresh():
                    self.within = (AGAIN,)
                    self.call(one, ())
        self.known = known

    def alone(self, function: Function) -> None:
        """Evaluate a function that nothing called, once."""
        if id(function.node) in self.done:
            return
        with self.fresh():
            self.call(function, helpers.assumed(self, function))

    def note(
        self,
        scope: Scope,
        kind: str,
        node: cst.CSTNode,
        attributes: Mapping[str, frozenset[str]],
        captures: Mapping[str, cst.CSTNode] | None = None,
    ) -> None:
        """Note an event, unless no rule is about its name."""
        if "name" in attributes and self.wanted.isdisjoint(attributes["name"]):
            return
        if kind == "name" and (guards := self._guards(attributes["name"])):
            attributes = {**attributes, "how": attributes["how"] | guards}
        event = Event(kind, node, attributes, captures or {})
        self.events.setdefault(event.key(), (scope.source, event))

    def _guards(self, names: frozenset[str]) -> frozenset[str]:
        """Return words for what keeps the uses of a name from a JAX that does not have it."""
        present = not {PRESENT + one for one in names}.isdisjoint(self.within)
        return _GUARDS.intersection(self.within) | ({"tried"} if present else frozenset())

    # Expressions

    def evaluate(self, scope: Scope, node: cst.BaseExpression) -> Value:
        """Return what is known of an expression's value, noting the events in it."""
        self.steps += 1
        evaluated = expressions.EVALUATED.get(type(node))
        return UNKNOWN if evaluated is None else evaluated(self, scope, node)

    def assign(self, scope: Scope, target: cst.BaseExpression, value: Value) -> None:
        """Bind a name, an attribute or several names to a value."""
        statements.assign(self, scope, target, value)

    def called(
        self,
        scope: Scope,
        node: cst.BaseExpression,
        function: Value,
        arguments: Sequence[Argument],
    ) -> Value:
        """Return the value of calling a value."""
        return calls.called(self, scope, node, function, arguments)

    # Functions

    def call(
        self,
        function: Function,
        arguments: Sequence[Argument],
        under: tuple[str, ...] = (),
        *,
        defaults: bool = False,
    ) -> Value:
        """Return the value of a call of the program's function, evaluating its body.

        With `defaults`, all arguments are known: an omitted parameter has its default.
        """
        node = function.node
        self.donated = ()
        if node in self.running or len(self.running) >= MOST_CALLS or self.exhausted():
            return UNKNOWN
        values = tuple(fingerprint(one.value) for one in arguments)
        if self._elsewhere(function) and not any(map(is_followed, arguments)):
            values = ()
        around = self.under, under, self.within, defaults
        place = id(node), function.scope, id(function.owner), *around, values
        if place in self.known:
            self.donated = self.donating.get(place, ())
            return self.known[place]
        self.done.add(id(node))
        scope = Scope(function.scope.source, parent=function.scope)
        self._bind(scope, function, arguments, defaults=defaults)
        before = self.under, self.passed_to_map
        self.under, self.passed_to_map = self.under + under, False
        self.running.append(node)
        self.frames.append(Frame())
        try:
            if isinstance(node, cst.Lambda):
                result = self.evaluate(scope, node.body)
            else:
                statements.block(self, scope, node.body)
                result = self._returned()
            self._nested(scope)
        finally:
            self.frames.pop()
            self.running.pop()
            self.under, self.passed_to_map = before
        self.known[place] = result
        self.donated = self.donating[place] = _donated(scope, function, len(arguments))
        return result

    def _elsewhere(self, function: Function) -> bool:
        """Return whether a function belongs to another file than the scanned one."""
        return function.scope.source is not self.scanned

    def exhausted(self) -> bool:
        """Return whether the evaluation took more than MOST_STEPS steps, so that it ends."""
        return self.steps > MOST_STEPS

    def _returned(self) -> Value:
        frame = self.frames[-1]
        if frame.yields:
            return Items(items=(merged_all(frame.yields),), kind="starred")
        return merged_all(frame.returns)

    def _nested(self, scope: Scope) -> None:
        """Evaluate nested functions that nothing called."""
        for value in list(scope.variables.values()):
            if not isinstance(value, Function) or value.scope is not scope:
                continue
            if id(value.node) not in self.done and value.node not in self.running:
                self.call(value, ())

    def _bind(
        self, scope: Scope, function: Function, arguments: Sequence[Argument], *, defaults: bool
    ) -> None:
        """Bind the parameters to the arguments."""
        params = function.node.params
        names = [one.name.value for one in (*params.posonly_params, *params.params)]
        for one in (*params.posonly_params, *params.params, *params.kwonly_params):
            default = UNKNOWN
            if isinstance(one.default, cst.Name):
                default = function.scope.value(one.default.value)
                if defaults and one.default.value == "None":
                    default = Constant(value=None)
            known = is_callable(default) or isinstance(default, Constant)
            scope.variables[one.name.value] = default if known else UNKNOWN
        for star in (params.star_arg, params.star_kwarg):
            if isinstance(star, cst.Param):
                scope.variables[star.name.value] = UNKNOWN
        named = {*names, *(one.name.value for one in params.kwonly_params)}
        rest, others = list[Value](), dict[str, Value]()
        positional = list(arguments)
        if function.owner is not None:
            positional.insert(0, Argument(function.owner, cst.Name("self")))
        position = 0
        for argument in positional:
            if argument.star:
                break
            if argument.keyword:
                if argument.keyword in named:
                    scope.variables[argument.keyword] = argument.value
                else:
                    others[argument.keyword] = argument.value
            elif position < len(names):
                scope.variables[names[position]] = argument.value
                position += 1
            else:
                rest.append(argument.value)
        if rest and isinstance(params.star_arg, cst.Param):
            scope.variables[params.star_arg.name.value] = Items(items=tuple(rest))
        if others and params.star_kwarg is not None:
            scope.variables[params.star_kwarg.name.value] = Items(
                items=tuple(others.values()), kind="dict", keys=tuple(others)
            )


def _donated(scope: Scope, function: Function, count: int) -> tuple[int, ...]:
    """Return the places of the arguments that a call donated and did not bind anew."""
    params = function.node.params
    names = [one.name.value for one in (*params.posonly_params, *params.params)]
    values = [scope.variables.get(name, UNKNOWN) for name in names]
    if isinstance(params.star_arg, cst.Param):
        rest = scope.variables.get(params.star_arg.name.value, UNKNOWN)
        values += rest.items if isinstance(rest, Items) else ()
    own = values[1:] if function.owner is not None else values
    return tuple(at for at, one in enumerate(own[:count]) if isinstance(one, Donated))


def is_callable(value: Value) -> bool:
    """Return whether a default value matters for an omitted parameter."""
    return isinstance(value, Mapped | Function | Reference)
