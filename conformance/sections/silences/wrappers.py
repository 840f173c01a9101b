"""A mapped function as a Python object: name, documentation, signature, the wrapped function, and
as a method.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    answers,
    ask,
    control,
    doubled,
)
from conformance.spec.columns import of_pmaps
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import TWICE, every, in_steps, returns
from conformance.spec.family import table
from conformance.worker.implementations import wrapper_kind
from conformance.worker.protocols import Cluster, Implementation

OF_JIT = "what jit(shard_map(f)) is called is for who writes it"
ASKED = "what is asked"

DEFAULTS = Defaults(claim="pmap-silence.wrapper-attributes", left_out=ONE_PROCESS_ALONE)


def marked(function: Any) -> Any:
    """Return the function, with its own attribute."""
    function.custom = 7
    return function


@marked
def named(x: Any, *, y: float = 2.0) -> Any:
    """Doc of named."""
    return x * y


class Called:
    """An object that can be called."""

    def __call__(self, x: Any) -> Any:
        return x * 2

    def method(self, x: Any) -> Any:
        """Doc of method."""
        return x * 2


MODULE = __name__


@dataclass(frozen=True, slots=True)
class Function:
    """A function to map, and the name and signature that the mapped function must show."""

    key: str
    text: str
    function: Callable[[], Any]
    name: str
    qualified: str
    module: str
    signature: str


FUNCTIONS: Mapping[str, Function] = table(
    Function(
        "function",
        "a function",
        lambda: named,
        "named",
        "named",
        MODULE,
        "(x, *, y=2.0)",
    ),
    Function(
        "jit",
        "a jitted function",
        lambda: jax.jit(named),
        "named",
        "named",
        MODULE,
        "(x, *, y=2.0)",
    ),
    Function(
        "partial",
        "a partial",
        lambda: functools.partial(named, y=3.0),
        "named",
        "named",
        "functools",
        "(x, *, y=3.0)",
    ),
    Function(
        "object",
        "a callable object",
        Called,
        "<unnamed function>",
        "<unnamed function>",
        MODULE,
        "(x)",
    ),
    Function(
        "method",
        "a bound method",
        lambda: Called().method,
        "method",
        "Called.method",
        MODULE,
        "(x)",
    ),
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that a program reads from a mapped function, and its expected value."""

    key: str
    text: str
    read: Callable[[Any, Any], Any]
    wanted: Callable[[Function], Any]


def _signature(mapped: Any, function: Any) -> str:
    parameters = inspect.signature(mapped).parameters.values()
    return "(" + str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters]))[1:]


ATTRIBUTES: Mapping[str, Attribute] = table(
    Attribute("name", "`__name__`", lambda m, f: m.__name__, lambda row: row.name),
    Attribute("qualname", "`__qualname__`", lambda m, f: m.__qualname__, lambda row: row.qualified),
    Attribute("doc", "`__doc__`", lambda m, f: m.__doc__ == f.__doc__, lambda row: True),
    Attribute("module", "`__module__`", lambda m, f: m.__module__, lambda row: row.module),
    Attribute(
        "wrapped",
        "`__wrapped__`, the function itself",
        lambda m, f: m.__wrapped__ is f,
        lambda row: True,
    ),
    Attribute("signature", "the signature", _signature, lambda row: row.signature),
)


@DEFAULTS.family(
    "silences.wrapper.{attribute}-of-{function}",
    attribute=ATTRIBUTES,
    function=FUNCTIONS,
    title="A mapped function of {function.text} has {attribute.text} as under legacy pmap.",
    fact="silences.wrapper.{attribute}",
    expect=lambda attribute, function: of_pmaps(
        every(CONTROLLED, in_steps(answers(attribute.wanted(function)), ASKED)), OF_JIT
    ),
)
def attribute_of(
    impl: Implementation, cluster: Cluster, attribute: Attribute, function: Function
) -> None:
    """Read an attribute of a mapped function."""
    control(impl, cluster)
    one = function.function()
    mapped = impl.map(one).function
    ask(cluster, ASKED, lambda: attribute.read(mapped, one))


@dataclass(frozen=True, slots=True)
class Object:
    """A use of a mapped function as an object; true if it behaves as under legacy pmap."""

    key: str
    text: str
    holds: Callable[[Any], bool]


def _kept(mapped: Any) -> bool:
    mapped.note = 1
    return bool(mapped.note == 1)


OBJECTS: Mapping[str, Object] = table(
    Object("custom", "has the attributes that the function was given", lambda m: m.custom == 7),
    Object("unwrap", "is unwrapped by `inspect.unwrap`", lambda m: inspect.unwrap(m) is named),
    Object("attribute-set", "accepts a new attribute", _kept),
    Object("hash", "can be a key of a dict", lambda m: {m: 1}[m] == 1),
    Object("deepcopy", "can be deep-copied", lambda m: callable(copy.deepcopy(m))),
    Object("lower", "has `lower`", lambda m: callable(m.lower)),
)


@DEFAULTS.family(
    "silences.wrapper.{case}",
    case=OBJECTS,
    title="A mapped function {case.text}.",
    expect=of_pmaps(every(CONTROLLED, in_steps(answers(True), ASKED)), OF_JIT),
)
def as_object(impl: Implementation, cluster: Cluster, case: Object) -> None:
    """Use a mapped function as an object."""
    control(impl, cluster)
    mapped = impl.map(named).function
    ask(cluster, ASKED, lambda: case.holds(mapped))


@DEFAULTS.clause(
    "silences.wrapper.as-a-method", expect=of_pmaps(in_steps(returns(doubled), *TWICE), OF_JIT)
)
def as_a_method(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function that is a class attribute is bound like a method, with static `self`."""

    class Model:
        factor = 2
        step = impl.map(
            lambda self, x: x * self.factor, in_axes=(None, 0), static_broadcasted_argnums=0
        ).function

    # The kind is read from the wrapper: a bound method is one more layer around it.
    kind = wrapper_kind(Model.__dict__["step"])
    cluster.twice(impl.adopt(Model().step, kind), cluster.rows(WIDTH))
