"""What is left behind by an error: the next program of the same process must still be right.

The document is silent, and legacy leaves nothing behind. Each cause is one of the documented
errors; whether and how it is raised is its own clause's subject, so that here only what follows is
judged: a fresh map, the same wrapper with arguments that fit, and a wrapper that was warm before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import Need, clause, devices, processes
from conformance.catalogue.names import IMPLEMENTATIONS, SHARD_MAP
from conformance.catalogue.topology import FOUR_PROCESSES, ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, OfEachStep, not_applicable, returns, steps
from conformance.sections.errors import (
    FOUR_DEVICES,
    INNER,
    OUTER,
    WHERE,
    WIDTH,
    added,
    grid,
    sync,
)

CLAIM = "pmap-silence.state-after-an-error"


@dataclass(frozen=True, slots=True)
class Scene:
    """A wrapper, arguments that fit it, and what goes wrong with it."""

    wrapper: Any
    fitting: tuple[Any, ...]
    cause: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """A documented error, and what the wrapper returns of arguments that fit."""

    name: str
    text: str
    scene: Callable[[Any, Any], Scene]
    model: Callable[[Place], Any]
    topologies: tuple[str, ...] = ONE_PROCESS
    needs: Need = field(default_factory=Need)
    pmap_only: str = ""
    warms: bool = False  # whether a wrapper that was called before is worth a clause of its own


def doubled(place: Place) -> Any:
    """this process's rows, doubled"""
    return place.rows(WIDTH) * 2


def _rows(impl: Any, cluster: Any) -> Any:
    return impl.given(cluster.rows(WIDTH))


def _map(impl: Any) -> Any:
    return impl.map(lambda x: x * 2)


def _misplaced(name: str) -> Callable[[Any, Any], Scene]:
    def scene(impl: Any, cluster: Any) -> Scene:
        where = WHERE[name]
        rows = where.rows(impl.rows(cluster, WIDTH))
        function = where.map(impl, lambda x: x * 2)
        elsewhere = where.put(impl, rows)
        return Scene(function, (rows,), lambda: function(elsewhere))

    return scene


def _unmapped(impl: Any, cluster: Any) -> Scene:
    function = impl.map(lambda x, y: x + y, in_axes=(0, None))
    rows, elsewhere = _rows(impl, cluster), WHERE["one-device"].put(impl, added(), mapped=False)
    return Scene(function, (rows, added()), lambda: function(rows, elsewhere))


def _outside(impl: Any, cluster: Any) -> Scene:
    function, rows = _map(impl), _rows(impl, cluster)
    elsewhere = jax.device_put(cluster.rows(WIDTH), cluster.local_devices[0])
    return Scene(function, (rows,), lambda: jax.numpy.add(function(rows), elsewhere))


def _nested(impl: Any, cluster: Any) -> Scene:
    inner = _map(impl)
    outer = impl.map(inner, "j")
    return Scene(inner, (_rows(impl, cluster),), lambda: outer(grid(cluster)))


def _set_mesh(impl: Any, cluster: Any) -> Scene:
    function, rows = _map(impl), _rows(impl, cluster)

    def cause() -> Any:
        with jax.set_mesh(impl.mesh("other", cluster.devices)):
            return function(rows)

    return Scene(function, (rows,), cause)


def _index(impl: Any, cluster: Any) -> Scene:
    function, rows = _map(impl), _rows(impl, cluster)
    return Scene(function, (rows,), lambda: function(rows)[0])


def _lowered(impl: Any, cluster: Any) -> Scene:
    function, rows = _map(impl), _rows(impl, cluster)
    return Scene(function, (rows,), lambda: function.lower(rows).compile()(rows))


def _fetch(impl: Any, cluster: Any) -> Scene:
    function, rows = _map(impl), _rows(impl, cluster)
    return Scene(function, (rows,), lambda: np.asarray(function(rows)))


def _names(impl: Any, cluster: Any) -> Scene:
    return Scene(_map(impl), (_rows(impl, cluster),), lambda: sync(f"of {cluster.process}"))


CAUSES = {
    cause.name: cause
    for cause in (
        *(
            Cause(
                where.name,
                f"an argument that lay {where.text}",
                _misplaced(where.name),
                lambda place, where=where: where.rows(doubled(place)),  # type: ignore[misc]
                where.topologies,
                FOUR_DEVICES if where.topologies == ONE_PROCESS else devices(2),
                warms=True,
            )
            for where in WHERE.values()
        ),
        Cause(
            "unmapped-argument",
            "an unmapped argument on one device",
            _unmapped,
            lambda place: place.rows(WIDTH) + added(),
            ONE_AND_FOUR,
            devices(2),
            warms=True,
        ),
        Cause(
            "outside-any-map",
            "an output that met an array on one device",
            _outside,
            doubled,
            needs=devices(2),
        ),
        Cause(
            "nested",
            "a pmap inside a pmap",
            _nested,
            doubled,
            needs=devices(OUTER * INNER),
            pmap_only="the cause is pmap inside pmap",
            warms=True,
        ),
        Cause("set-mesh", "a call under another mesh", _set_mesh, doubled, warms=True),
        Cause("index", "an index into an output", _index, doubled, FOUR_PROCESSES, processes(2)),
        Cause(
            "lowered",
            "the bare compiled stage",
            _lowered,
            doubled,
            FOUR_PROCESSES,
            processes(2),
            pmap_only="shard_map's compiled stage takes what the map takes",
            warms=True,
        ),
        Cause("fetch", "a fetch of an output", _fetch, doubled, FOUR_PROCESSES, processes(2)),
        Cause(
            "sync-names", "a barrier of other names", _names, doubled, FOUR_PROCESSES, processes(2)
        ),
    )
}

ERROR, AFTER, AGAIN = "the cause", "after", "after again"


def fresh_map(impl: Any, cluster: Any, cause: str) -> None:
    """A new map, after the error."""
    scene = CAUSES[cause].scene(impl, cluster)
    cluster.step(ERROR, scene.cause)
    function, rows = _map(impl), _rows(impl, cluster)
    cluster.step(AFTER, function, rows)
    cluster.step(AGAIN, function, rows)


def same_wrapper(impl: Any, cluster: Any, cause: str) -> None:
    """The wrapper that saw the error, with arguments that fit."""
    scene = CAUSES[cause].scene(impl, cluster)
    cluster.step(ERROR, scene.cause)
    cluster.step(AFTER, scene.wrapper, *scene.fitting)
    cluster.step(AGAIN, scene.wrapper, *scene.fitting)


def warm_wrapper(impl: Any, cluster: Any, cause: str) -> None:
    """The wrapper that worked before the error, with the same arguments as then."""
    scene = CAUSES[cause].scene(impl, cluster)
    cluster.step("before", scene.wrapper, *scene.fitting)
    cluster.step("before again", scene.wrapper, *scene.fitting)
    cluster.step(ERROR, scene.cause)
    cluster.step(AFTER, scene.wrapper, *scene.fitting)
    cluster.step(AGAIN, scene.wrapper, *scene.fitting)


ANYTHING = OfEachStep(
    "whatever happens, as the cause is judged in a clause of its own",
    lambda place, step: (True, str(step)),
)


def _everywhere(expectation: Expectation, cause: Cause) -> dict[str, Expectation]:
    expected = dict.fromkeys(IMPLEMENTATIONS, expectation)
    if cause.pmap_only:
        expected[SHARD_MAP] = not_applicable(cause.pmap_only)
    return expected


for _cause in CAUSES.values():
    _common: dict[str, Any] = {
        "claim": CLAIM,
        "needs": _cause.needs,
        "topologies": _cause.topologies,
        "parameters": {"cause": _cause.name},
    }
    _id = "errors.state-after-error"
    _fresh = returns(doubled)
    clause(
        f"{_id}.{_cause.name}-fresh-map",
        title=f"After {_cause.text}, a new map is right.",
        expect=_everywhere(steps(the_cause=ANYTHING, after=_fresh, after_again=_fresh), _cause),
        **_common,
    )(fresh_map)
    _right = returns(_cause.model, text="the right values")
    _after = {"the_cause": ANYTHING, "after": _right, "after_again": _right}
    clause(
        f"{_id}.{_cause.name}-same-wrapper",
        title=f"After {_cause.text}, the same wrapper is right about arguments that fit.",
        expect=_everywhere(steps(**_after), _cause),
        **_common,
    )(same_wrapper)
    if _cause.warms:
        clause(
            f"{_id}.{_cause.name}-warm-wrapper",
            title=f"After {_cause.text}, a wrapper that worked before works as before.",
            expect=_everywhere(steps(before=_right, before_again=_right, **_after), _cause),
            **_common,
        )(warm_wrapper)
