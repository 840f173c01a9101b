"""The stages of a mapped function: `lower`, `compile`, calls of the compiled stage, and its errors.

`errors.lowered` has clauses on stages without options; here are the other kinds of argument, the
pytree of the result, and the calls that a compiled stage refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CALL,
    CONTROLLED,
    NESTED,
    ONE_PROCESS_ALONE,
    WIDTH,
    control,
    doubled,
    nested,
)
from conformance.spec.aspects import RESULT, figure
from conformance.spec.clause import devices
from conformance.spec.codes import Code, Problem
from conformance.spec.columns import Columns, everywhere
from conformance.spec.comparing import Model
from conformance.spec.expectation import (
    TWICE,
    OfEachStep,
    every,
    in_steps,
    not_applicable,
    raises,
    returns,
)
from conformance.spec.family import family, table
from conformance.spec.names import SHARD_MAP
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.implementations import wrapper_kind
from conformance.worker.protocols import Cluster, Implementation, Mapped

STAGE = "pmap-silence.stage-lower-and-compile"
TELLS = "pmap-silence.stage-introspection"
NO_STATIC = "shard_map has no static arguments"
BY_POSITION = "shard_map takes no keyword: errors.arguments.keyword"
IN_BLOCKS = "shard_map has rows for all devices of its mesh"


def compiled(impl: Implementation, function: Any, *args: Any, **kwargs: Any) -> Mapped:
    """Return the compiled stage of a mapped function, adopted, so that its calls are proven to be
    this implementation's.
    """
    kind = wrapper_kind(function.function) if impl.is_pmap else "jit(shard_map)"
    return impl.adopt(function.lower(*args, **kwargs).compile(), kind)


@dataclass(frozen=True, slots=True)
class Stage:
    """A mapped function, the arguments for lowering it and for calling its compiled stage, and the
    result's `tree`.

    `options` are the mapped function's; `apart` is why shard_map is not tested.
    """

    key: str
    text: str
    body: Callable[[], Any]
    lowered: Callable[[Place], tuple[Any, ...]]
    called: Callable[[Place], tuple[Any, ...]]
    model: Model
    tree: str = "PyTreeDef(*)"
    options: Mapping[str, Any] | None = None
    keywords: bool = False
    apart: str = ""


def rows(place: Place) -> tuple[Any, ...]:
    """A row per device."""
    return (place.rows(WIDTH),)


def two(place: Place) -> tuple[Any, ...]:
    """Two arguments, each a row per device."""
    return (place.rows(WIDTH), place.rows(WIDTH))


def shapes(place: Place) -> tuple[Any, ...]:
    """Return the shapes that replace the arguments of `two`."""
    return (jax.ShapeDtypeStruct((8, WIDTH), np.float32),) * 2


@described("the doubled rows, twice")
def of_two(place: Place) -> Any:
    doubled = place.rows(WIDTH) * 2
    return {"s": doubled, "t": [doubled]}


def half(place: Place) -> tuple[Any, ...]:
    """Half of the rows."""
    return (place.rows(WIDTH)[:4],)


@described("half of the rows, doubled")
def half_doubled(place: Place) -> Any:
    return place.rows(WIDTH)[:4] * 2


STAGES: Mapping[str, Stage] = table(
    Stage("tree", "a pytree of results", nested, two, two, of_two, NESTED),
    Stage("shapes", "ShapeDtypeStructs instead of arrays", nested, shapes, two, of_two, NESTED),
    Stage(
        "unmapped",
        "an unmapped argument",
        lambda: lambda x, y: x + y,
        lambda place: (place.rows(WIDTH), place.rows(WIDTH)[0]),
        lambda place: (place.rows(WIDTH), place.rows(WIDTH)[0]),
        lambda place: place.rows(WIDTH) + place.rows(WIDTH)[0],
        options={"in_axes": (0, None)},
    ),
    Stage(
        "static",
        "a static argument, which the compiled stage does not take",
        lambda: lambda x, n: x * n,
        lambda place: (place.rows(WIDTH), 2),
        rows,
        doubled,
        options={"static_broadcasted_argnums": 1},
        apart=NO_STATIC,
    ),
    Stage(
        "keyword",
        "a keyword argument",
        lambda: lambda x, y: x + y,
        two,
        two,
        lambda place: place.rows(WIDTH) * 2,
        keywords=True,
        apart=BY_POSITION,
    ),
    Stage(
        "fewer-rows",
        "rows for half of the devices",
        lambda: lambda x: x * 2,
        half,
        half,
        half_doubled,
        apart=IN_BLOCKS,
    ),
)


def returns_tree(model: Model, tree: str) -> OfEachStep:
    """Expect the same as `returns`, in a pytree of this structure, which the step noted."""
    values = returns(model)

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        right, saw = values.check_step(place, step)
        noted = step.extra.get("tree")
        if right and noted != tree:
            return False, Problem(f"in {noted} in place of {tree}: {saw}", Code.NOTE)
        return right, saw

    return OfEachStep(f"{values.text}, in {tree}", check_step, claims=RESULT | {figure("tree")})


def as_the_map(stage: Stage) -> Columns:
    """Expect the values and the pytree of the mapped function itself."""
    columns = everywhere(every(CONTROLLED, in_steps(returns_tree(stage.model, stage.tree), *TWICE)))
    return columns | ({SHARD_MAP: not_applicable(stage.apart)} if stage.apart else {})


@family(
    "silences.stage.{stage}",
    stage=STAGES,
    claim=STAGE,
    title="A mapped function is lowered and compiled with {stage.text}.",
    left_out=ONE_PROCESS_ALONE,
    needs=lambda stage: devices(8) if stage.lowered in (shapes, half) else devices(2),
    expect=as_the_map,
)
def staged(impl: Implementation, cluster: Cluster, stage: Stage) -> None:
    """Call the compiled stage of a mapped function twice."""
    control(impl, cluster)
    function = impl.map(stage.body(), **(stage.options or {}))
    ready: list[Any] = []

    def call() -> Any:
        first, *others = stage.lowered(cluster)
        by_name = dict(zip("yz", others, strict=False)) if stage.keywords else {}
        if not ready:
            ready.append(compiled(impl, function, first, *([] if by_name else others), **by_name))
        given = stage.called(cluster)
        return ready[0](given[0], **by_name) if by_name else ready[0](*given)

    for name in TWICE:
        result = cluster.step(name, call)
        if result is not None:
            cluster.note("tree", str(jax.tree.structure(result)))


@dataclass(frozen=True, slots=True)
class Misused:
    """A call that a compiled stage refuses, with legacy's text."""

    key: str
    text: str
    call: Callable[[Any, Place], Any]
    message: str


def differs(was: str, now: str) -> str:
    """Legacy's text: both types."""
    return (
        r"^Argument types differ from the types for which this computation was compiled\..*"
        rf"compiled with {was} and called with {now}$"
    )


MISUSED: Mapping[str, Misused] = table(
    Misused(
        "other-dtype",
        "another dtype",
        lambda stage, place: stage(place.rows(WIDTH), place.rows(WIDTH, dtype=np.int32)),
        differs(r"float32\[8,3\]", r"int32\[8,3\]"),
    ),
    Misused(
        "other-shape",
        "another shape",
        lambda stage, place: stage(place.rows(WIDTH), place.rows(2)),
        differs(r"float32\[8,3\]", r"float32\[8,2\]"),
    ),
    Misused(
        "too-few",
        "one argument too few",
        lambda stage, place: stage(place.rows(WIDTH)),
        r"does not match the input pytree it was called with\..*at args, seen tuple of length 2 "
        r"but now given tuple of length 1",
    ),
    Misused(
        "keywords",
        "its arguments by keyword",
        lambda stage, place: stage(x=place.rows(WIDTH), y=place.rows(WIDTH)),
        r"does not match the input pytree it was called with\..*at args, seen tuple of length 2 "
        r"but now given tuple of length 0.*at kwargs",
    ),
)


@family(
    "silences.stage.refuses-{case}",
    case=MISUSED,
    claim=STAGE,
    title=(
        "A compiled stage called with {case.text} raises an error that names what it got and "
        "what it expects."
    ),
    fact="silences.stage.refuses",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(2),
    expect=lambda case: everywhere(in_steps(raises(TypeError, case.message), CALL)),
)
def misused(impl: Implementation, cluster: Cluster, case: Misused) -> None:
    """A call of a compiled stage with something else than it was compiled for."""
    stage = compiled(impl, impl.map(lambda x, y: x + y), *two(cluster))
    cluster.step(CALL, case.call, stage, cluster)
