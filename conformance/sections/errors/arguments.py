"""`Received incompatible devices`, by where an argument lies and by how it is passed.

A table of places by ways of passing, because the code that checks a mapped argument is not the one
that checks an unmapped one, a later call takes another path than the first, and a pytree hides its
one offending leaf. Arguments that lie nowhere in particular must pass.
"""

from __future__ import annotations

from typing import Any

import jax

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS
from conformance.judging.expectation import Expectation, not_applicable, raises, returns, steps
from conformance.sections.errors import (
    AS_JIT_CLAIM,
    FOUR_DEVICES,
    INCOMPATIBLE,
    WHERE,
    WIDTH,
    added,
    times,
)

LATER_CALL_CLAIM = "pmap-silence.incompatible-devices-second-call"
POSITIONAL_ONLY = "shard_map takes no keyword arguments"


def expected(model: Any, shard_map: Expectation | None = None) -> dict[str, Expectation]:
    """Legacy resharded in silence; the others refuse, on every call."""
    refused = raises(ValueError, INCOMPATIBLE, otherwise=model)
    return {LEGACY_PMAP: returns(model), NEW_PMAP: refused, SHARD_MAP: shard_map or refused}


def unmapped(impl: Any, cluster: Any, where: str) -> None:
    """An unmapped argument lies elsewhere."""
    place = WHERE[where]
    elsewhere = place.put(impl, added(), mapped=False)
    function = place.map(impl, lambda x, y: x + y, in_axes=(0, None))
    cluster.twice(function, place.rows(impl.rows(cluster, WIDTH)), elsewhere)


def keyword(impl: Any, cluster: Any, where: str) -> None:
    """A keyword argument (always mapped over its leading axis) lies elsewhere."""
    place = WHERE[where]
    rows = place.rows(impl.rows(cluster, WIDTH))
    function = place.map(impl, lambda x, y: x + 2 * y)
    elsewhere = place.put(impl, rows)
    cluster.twice(lambda: function(rows, y=elsewhere))


def leaf(impl: Any, cluster: Any, where: str) -> None:
    """One leaf of a pytree lies elsewhere, the others where the map expects them."""
    place = WHERE[where]
    rows = place.rows(impl.rows(cluster, WIDTH))
    tree = {"a": rows, "b": [place.put(impl, rows)]}
    cluster.twice(place.map(impl, lambda t: t["a"] + 2 * t["b"][0]), tree)


def later_call(impl: Any, cluster: Any, where: str) -> None:
    """An argument lies elsewhere once the wrapper's fast path is warm."""
    place = WHERE[where]
    rows = place.rows(impl.rows(cluster, WIDTH))
    function = place.map(impl, lambda x: x * 2)
    cluster.step("fitting call", function, rows)
    cluster.step("fitting call again", function, rows)
    elsewhere = place.put(impl, rows)
    cluster.step("misplaced call", function, elsewhere)
    cluster.step("misplaced call again", function, elsewhere)


for _where in WHERE.values():
    _common: dict[str, Any] = {
        "needs": FOUR_DEVICES if _where.topologies == ONE_PROCESS else processes(1),
        "topologies": _where.topologies,
        "parameters": {"where": _where.key},
    }
    _prefix = "errors.incompatible-devices"
    if _where.key not in ("one-device", "replicated"):  # has a clause of its own; is what it wants
        clause(
            f"{_prefix}.unmapped-{_where.key}",
            claim=_where.claim,
            title=f"An unmapped argument lies {_where.text}.",
            expect=expected(lambda place, where=_where: where.rows(place.rows(WIDTH)) + added()),
            **_common,
        )(unmapped)
    clause(
        f"{_prefix}.keyword-{_where.key}",
        claim=_where.claim,
        title=f"A keyword argument lies {_where.text}.",
        expect=expected(times(3, _where), not_applicable(POSITIONAL_ONLY)),
        **_common,
    )(keyword)
    clause(
        f"{_prefix}.leaf-{_where.key}",
        claim=_where.claim,
        title=f"One leaf of a pytree argument lies {_where.text}.",
        expect=expected(times(3, _where)),
        **_common,
    )(leaf)
    _model = times(2, _where)
    _refused = raises(ValueError, INCOMPATIBLE, otherwise=_model)
    clause(
        f"{_prefix}.later-call-{_where.key}",
        claim=LATER_CALL_CLAIM,
        title=f"After two fitting calls of the same wrapper, its argument lies {_where.text}.",
        expect={LEGACY_PMAP: returns(_model)}
        | dict.fromkeys(
            (NEW_PMAP, SHARD_MAP),
            steps(
                fitting_call=returns(_model),
                fitting_call_again=returns(_model),
                misplaced_call=_refused,
                misplaced_call_again=_refused,
            ),
        ),
        **_common,
    )(later_call)


PASSES: dict[str, Expectation] = dict.fromkeys(
    IMPLEMENTATIONS, returns(lambda place: place.rows(WIDTH) * 3, text="the rows, three times")
)


@clause(
    "errors.incompatible-devices.numpy-passes",
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=PASSES,
)
def numpy_passes(impl: Any, cluster: Any) -> None:
    """NumPy arguments lie nowhere, so that no map refuses them."""
    rows = impl.rows(cluster, WIDTH)
    cluster.twice(impl.map(lambda x, y: x + 2 * y), rows, rows)


@clause(
    "errors.incompatible-devices.uncommitted-passes",
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=PASSES,
)
def uncommitted_passes(impl: Any, cluster: Any) -> None:
    """Uncommitted arrays are moved to where the map wants them."""
    rows = jax.numpy.asarray(impl.rows(cluster, WIDTH))
    cluster.twice(impl.map(lambda x, y: x + 2 * y), rows, rows)


@clause(
    "errors.incompatible-devices.uncommitted-unmapped-passes",
    claim=AS_JIT_CLAIM,
    topologies=ONE_AND_FOUR,
    expect=dict.fromkeys(
        IMPLEMENTATIONS, returns(lambda place: place.rows(WIDTH) + added(), text="rows plus y")
    ),
)
def uncommitted_unmapped_passes(impl: Any, cluster: Any) -> None:
    """An uncommitted unmapped argument is moved to where the map wants it."""
    rows, unmapped = jax.numpy.asarray(impl.rows(cluster, WIDTH)), jax.numpy.asarray(added())
    cluster.twice(impl.map(lambda x, y: x + y, in_axes=(0, None)), rows, unmapped)
