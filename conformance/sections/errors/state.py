"""The state after an error: the next program of the same process must still be right.

The document is silent. Each mistake is one of the documented errors, made twice, because a second
wrong call takes another path than the first. It must be raised, or nothing is tested; its message
is tested by its own clause. Judged is what follows: a new mapped function, the same wrapper with
valid arguments, and a wrapper that was called before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.errors import (
    COPY_ARRAYS,
    FOUR_DEVICES,
    INNER,
    OF_BARRIERS,
    OF_DEVICES,
    OF_FETCHES,
    OF_MESHES,
    OF_PLACES,
    OF_STAGES,
    OUTER,
    WHERE,
    WIDTH,
    Known,
    an_error,
    grid,
    plus_addend,
    sync,
    times,
)
from conformance.spec.clause import Need, devices, processes
from conformance.spec.columns import Columns
from conformance.spec.comparing import Model, in_container
from conformance.spec.expectation import not_applicable, returns, steps
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import IMPLEMENTATIONS, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import FOUR_PROCESSES, ONE_AND_FOUR, ONE_PROCESS
from conformance.worker.bodies import add, addend, double, doubled
from conformance.worker.protocols import Cluster, Implementation, Mapped

CLAIM = "pmap-silence.state-after-an-error"
REFUSED = "refused-argument"


@dataclass(frozen=True, slots=True)
class Scene:
    """A wrapper, arguments that fit it, and the call that goes wrong."""

    wrapper: Any
    fitting: tuple[Any, ...]
    erring: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A documented error, and the wrapper's result for valid arguments.

    `erring` is what the wrong call would return, `of` the implementations in which it raises;
    `warms`: a wrapper that was called before has its own clause; `finding` names the finding that
    it shares with others; `errors` are those that it may raise.
    """

    key: str
    text: str
    scene: Callable[[Implementation, Cluster], Scene]
    model: Model
    erring: Model
    topologies: tuple[str, ...] = ONE_PROCESS
    needs: Need | None = None
    of: tuple[str, ...] = (NEW_PMAP, SHARD_MAP)
    warms: bool = False
    finding: str = ""
    errors: tuple[Known, ...] = OF_PLACES

    @property
    def right(self) -> Expectation:
        """Expect the wrapper's result."""
        return returns(self.model, text="the right values")

    def columns(self, **around: Expectation) -> Columns:
        """Both calls raise, and `around` them all is right; of the implementations that raise."""
        erring = in_container(_none_of_nothing, self.erring)
        error = an_error(erring, *self.errors)
        expected = steps(mistaken_call=error, mistaken_call_again=error, **around)
        unasked = not_applicable("no error here: nothing could be left behind")
        return {name: expected if name in self.of else unasked for name in IMPLEMENTATIONS}


@described("None for a result without arrays, as a barrier returns it")
def _none_of_nothing(result: Any) -> Any:
    return None if isinstance(result, list) and not result else result


def plain(impl: Implementation, cluster: Cluster) -> tuple[Mapped, Any]:
    """A map that doubles its rows, and rows that fit it."""
    return impl.map(double()), impl.given(cluster.rows(WIDTH))


def misplaced(key: str, *of: str) -> Mistake:
    """Return the mistake of a mapped argument on the wrong devices."""
    where = WHERE[key]

    def scene(impl: Implementation, cluster: Cluster) -> Scene:
        rows = where.rows(impl.rows(cluster, WIDTH))
        function = where.map(impl, double())
        elsewhere = where.put(impl, rows)
        return Scene(function, (rows,), lambda: function(elsewhere))

    return Mistake(
        key,
        f"an argument {where.text}",
        scene,
        times(2, where),
        times(2, where),
        where.topologies,
        FOUR_DEVICES if where.topologies == ONE_PROCESS else devices(2),
        of,
        warms=True,
        finding=REFUSED,
    )


def _unmapped(impl: Implementation, cluster: Cluster) -> Scene:
    function = impl.map(add(), in_axes=(0, None))
    rows = impl.given(cluster.rows(WIDTH))
    elsewhere = WHERE["one-device"].put(impl, addend(WIDTH), mapped=False)
    return Scene(function, (rows, addend(WIDTH)), lambda: function(rows, elsewhere))


def _outside(impl: Implementation, cluster: Cluster) -> Scene:
    function, rows = plain(impl, cluster)
    elsewhere = jax.device_put(cluster.rows(WIDTH), cluster.local_devices[0])
    return Scene(function, (rows,), lambda: jax.numpy.add(function(rows), elsewhere))


def _nested(impl: Implementation, cluster: Cluster) -> Scene:
    inner, rows = plain(impl, cluster)
    outer = impl.map(inner, "j")
    return Scene(inner, (rows,), lambda: outer(grid(cluster)))


def _set_mesh(impl: Implementation, cluster: Cluster) -> Scene:
    function, rows = plain(impl, cluster)

    def erring() -> Any:
        with jax.set_mesh(impl.mesh("other", cluster.devices)):
            return function(rows)

    return Scene(function, (rows,), erring)


def _index(impl: Implementation, cluster: Cluster) -> Scene:
    function, rows = plain(impl, cluster)
    return Scene(function, (rows,), lambda: function(rows)[0])


def _lowered(impl: Implementation, cluster: Cluster) -> Scene:
    function, rows = plain(impl, cluster)
    return Scene(function, (rows,), lambda: function.lower(rows).compile()(rows))


def _fetch(impl: Implementation, cluster: Cluster) -> Scene:
    function, rows = plain(impl, cluster)
    return Scene(function, (rows,), lambda: np.asarray(function(rows)))


def _names(impl: Implementation, cluster: Cluster) -> Scene:
    function, rows = plain(impl, cluster)
    return Scene(function, (rows,), lambda: sync(f"of {cluster.process}"))


MISTAKES: Mapping[str, Mistake] = table(
    misplaced("one-device", NEW_PMAP, SHARD_MAP),
    misplaced("fewer-devices", NEW_PMAP, SHARD_MAP),
    misplaced("other-devices", NEW_PMAP, SHARD_MAP),
    misplaced("other-order", NEW_PMAP, SHARD_MAP),
    misplaced("other-spec", NEW_PMAP),
    misplaced("replicated", NEW_PMAP),
    Mistake(
        "unmapped-argument",
        "an unmapped argument on one device",
        _unmapped,
        plus_addend(WIDTH),
        plus_addend(WIDTH),
        ONE_AND_FOUR,
        devices(2),
        warms=True,
        finding=REFUSED,
    ),
    Mistake(
        "outside-any-map",
        "an output combined with an array on one device",
        _outside,
        doubled(WIDTH),
        times(3, WHERE["one-device"]),
        needs=devices(2),
        errors=(OF_DEVICES,),
    ),
    Mistake(
        "nested",
        "a pmap inside a pmap",
        _nested,
        doubled(WIDTH),
        lambda place: grid(place) * 2,
        needs=devices(OUTER * INNER),
        of=(NEW_PMAP,),
        warms=True,
        errors=OF_MESHES,
    ),
    Mistake(
        "set-mesh",
        "a call under `jax.set_mesh` of another mesh",
        _set_mesh,
        doubled(WIDTH),
        doubled(WIDTH),
        warms=True,
        errors=OF_MESHES,
    ),
    Mistake(
        "index",
        "indexing an output",
        _index,
        doubled(WIDTH),
        lambda place: place.rows(WIDTH)[0] * 2,
        FOUR_PROCESSES,
        processes(2),
        (NEW_PMAP,),
        errors=(COPY_ARRAYS,),
    ),
    Mistake(
        "lowered",
        "a call of the compiled stage",
        _lowered,
        doubled(WIDTH),
        doubled(WIDTH),
        FOUR_PROCESSES,
        processes(2),
        (NEW_PMAP,),
        warms=True,
        errors=OF_STAGES,
    ),
    Mistake(
        "fetch",
        "fetching an output",
        _fetch,
        doubled(WIDTH),
        lambda place: place.all_rows(WIDTH) * 2,
        FOUR_PROCESSES,
        processes(2),
        (SHARD_MAP,),
        errors=(OF_FETCHES,),
    ),
    Mistake(
        "sync-names",
        "a barrier with other names",
        _names,
        doubled(WIDTH),
        lambda place: [],
        FOUR_PROCESSES,
        processes(2),
        IMPLEMENTATIONS,
        errors=(OF_BARRIERS,),
    ),
)

AFTER, AGAIN = "after", "after again"


def go_wrong(cluster: Cluster, scene: Scene) -> None:
    """The call that goes wrong, twice, as a second one takes another path than the first."""
    cluster.step("mistaken call", scene.erring)
    cluster.step("mistaken call again", scene.erring)


def process_fact(mistake: Mistake) -> str:
    """Return the fact on whether another mapped function works in the process."""
    return f"errors.state-after-error.{mistake.finding or mistake.key}"


def wrapper_fact(mistake: Mistake) -> str:
    """Return the fact on whether the wrapper itself still works."""
    return f"{process_fact(mistake)}-wrapper"


@family(
    "errors.state-after-error.{mistake}-fresh-map",
    mistake=MISTAKES,
    fact=process_fact,
    claim=CLAIM,
    title="After {mistake.text}, a new mapped function returns the right values.",
    expect=lambda mistake: mistake.columns(
        after=returns(doubled(WIDTH)), after_again=returns(doubled(WIDTH))
    ),
)
def fresh_map(impl: Implementation, cluster: Cluster, mistake: Mistake) -> None:
    """A new map, after the error."""
    scene = mistake.scene(impl, cluster)
    go_wrong(cluster, scene)
    function, rows = plain(impl, cluster)
    cluster.step(AFTER, function, rows)
    cluster.step(AGAIN, function, rows)


@family(
    "errors.state-after-error.{mistake}-same-wrapper",
    mistake=MISTAKES,
    fact=wrapper_fact,
    claim=CLAIM,
    title="After {mistake.text}, the same wrapper returns the right values for valid arguments.",
    expect=lambda mistake: mistake.columns(after=mistake.right, after_again=mistake.right),
)
def same_wrapper(impl: Implementation, cluster: Cluster, mistake: Mistake) -> None:
    """The wrapper that saw the error, with arguments that fit."""
    scene = mistake.scene(impl, cluster)
    go_wrong(cluster, scene)
    cluster.step(AFTER, scene.wrapper, *scene.fitting)
    cluster.step(AGAIN, scene.wrapper, *scene.fitting)


@family(
    "errors.state-after-error.{mistake}-warm-wrapper",
    mistake=MISTAKES,
    only=lambda mistake: mistake.warms,
    fact=wrapper_fact,
    claim=CLAIM,
    title="After {mistake.text}, a wrapper that was called before works as before.",
    expect=lambda mistake: mistake.columns(
        before=mistake.right,
        before_again=mistake.right,
        after=mistake.right,
        after_again=mistake.right,
    ),
)
def warm_wrapper(impl: Implementation, cluster: Cluster, mistake: Mistake) -> None:
    """The wrapper that worked before the error, with the same arguments as then."""
    scene = mistake.scene(impl, cluster)
    cluster.step("before", scene.wrapper, *scene.fitting)
    cluster.step("before again", scene.wrapper, *scene.fitting)
    go_wrong(cluster, scene)
    cluster.step(AFTER, scene.wrapper, *scene.fitting)
    cluster.step(AGAIN, scene.wrapper, *scene.fitting)


@family(
    "errors.state-after-error.{mistake}-cleared-wrapper",
    mistake=MISTAKES,
    only=lambda mistake: mistake.key == "other-order",
    topologies=FOUR_PROCESSES,
    needs=processes(2),
    claim=CLAIM,
    fixes="errors.state-after-error.other-order-same-wrapper",
    title="After {mistake.text} and jax.clear_caches(), the same wrapper returns the right values.",
    expect=lambda mistake: mistake.columns(after=mistake.right, after_again=mistake.right),
)
def cleared_wrapper(impl: Implementation, cluster: Cluster, mistake: Mistake) -> None:
    """The wrapper that saw the error, with arguments that fit, after caches were cleared."""
    scene = mistake.scene(impl, cluster)
    go_wrong(cluster, scene)
    jax.clear_caches()
    cluster.step(AFTER, scene.wrapper, *scene.fitting)
    cluster.step(AGAIN, scene.wrapper, *scene.fitting)
