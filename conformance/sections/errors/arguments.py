"""`Received incompatible devices`, by where an argument lies and by how it is passed.

A table of places by ways of passing, because the code that checks a mapped argument is not the one
that checks an unmapped one, a later call takes another path than the first, and a pytree hides its
one offending leaf. Arguments that lie nowhere in particular must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import clause, processes
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import ONE_AND_FOUR, ONE_PROCESS, Place
from conformance.judging.expectation import Expectation, not_applicable, raises, returns, steps

CLAIM = "migrate-pmap.incompatible-devices"
OWN_DEVICES_CLAIM = "migrate-pmap.incompatible-sharding"
LATER_CALL_CLAIM = "pmap-silence.incompatible-devices-second-call"
AS_JIT_CLAIM = "migrate-pmap.incompatible-devices-as-jit"
MESSAGE = "Received incompatible devices"
POSITIONAL_ONLY = "shard_map takes no keyword arguments"

WIDTH = 8  # of a row; so that rows can be sharded along it as well
FOUR_DEVICES = processes(1, devices_per_process=4)

Devices = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Where:
    """A place for an argument of a map over `devices`, and which devices the map is over then."""

    name: str
    text: str
    devices: Callable[[Devices], Devices]
    mapped: tuple[str | None, ...] | None = ("i",)
    unmapped: tuple[str | None, ...] | None = ()
    topologies: tuple[str, ...] = ONE_PROCESS
    half: bool = False
    claim: str = CLAIM

    def put(self, impl: Any, array: Any, *, mapped: bool = True) -> Any:
        """The array where the map does not expect it."""
        chosen = self.devices(impl.devices)
        spec = self.mapped if mapped else self.unmapped
        if spec is None:
            return jax.device_put(array, chosen[0])
        partition = jax.sharding.PartitionSpec(*spec)
        return jax.device_put(array, jax.sharding.NamedSharding(impl.mesh("i", chosen), partition))

    def map(self, impl: Any, body: Callable[..., Any], **options: Any) -> Any:
        """The map that is given the misplaced argument."""
        if self.half:
            options["devices"] = first_half(impl.devices)
        return impl.map(body, **options)

    def rows(self, rows: Any) -> Any:
        """As many of the rows as the map has devices."""
        return first_half(rows) if self.half else rows


def first_half(sequence: Any) -> Any:
    """Devices, or rows."""
    return sequence[: len(sequence) // 2]


WHERE = {
    one.name: one
    for one in (
        Where(
            "one-device",
            "committed to one device",
            lambda devices: [d for d in devices if d in jax.local_devices()][:1],
            mapped=None,
            unmapped=None,
            topologies=ONE_AND_FOUR,
        ),
        Where("fewer-devices", "on half of the map's devices", first_half),
        Where(
            "other-devices",
            "on devices that are not the map's",
            lambda devices: devices[len(devices) // 2 :],
            half=True,
        ),
        Where(
            "other-order",
            "on the map's devices in reverse order",
            lambda devices: devices[::-1],
            topologies=ONE_AND_FOUR,
            claim=OWN_DEVICES_CLAIM,
        ),
        Where(
            "other-spec",
            "sharded otherwise on the map's devices",
            list,
            mapped=(None, "i"),
            unmapped=("i",),
            topologies=ONE_AND_FOUR,
            claim=OWN_DEVICES_CLAIM,
        ),
        Where(
            "replicated",
            "replicated over the map's devices",
            list,
            mapped=(),
            topologies=ONE_AND_FOUR,
            claim=OWN_DEVICES_CLAIM,
        ),
    )
}


def fitting(impl: Any, rows: Any) -> Any:
    """The rows where the map over all devices expects them."""
    return jax.device_put(rows, impl.sharding())


def added() -> Any:
    """An unmapped argument."""
    return np.arange(10, 10 * WIDTH + 10, 10, dtype=np.float32)


def times(factor: int, where: Where) -> Callable[[Place], Any]:
    """The model of a map that multiplies its rows."""

    def model(place: Place) -> Any:
        return where.rows(place.rows(WIDTH)) * factor

    model.__doc__ = f"this process's rows times {factor}"
    return model


def expected(model: Any, shard_map: Expectation | None = None) -> dict[str, Expectation]:
    """Legacy resharded in silence; the others refuse, on every call."""
    refused = raises(ValueError, MESSAGE, otherwise=model)
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
        "parameters": {"where": _where.name},
    }
    _prefix = "errors.incompatible-devices"
    if _where.name not in ("one-device", "replicated"):  # has a clause of its own; is what it wants
        clause(
            f"{_prefix}.unmapped-{_where.name}",
            claim=_where.claim,
            title=f"An unmapped argument lies {_where.text}.",
            expect=expected(lambda place, where=_where: where.rows(place.rows(WIDTH)) + added()),
            **_common,
        )(unmapped)
    clause(
        f"{_prefix}.keyword-{_where.name}",
        claim=_where.claim,
        title=f"A keyword argument lies {_where.text}.",
        expect=expected(times(3, _where), not_applicable(POSITIONAL_ONLY)),
        **_common,
    )(keyword)
    clause(
        f"{_prefix}.leaf-{_where.name}",
        claim=_where.claim,
        title=f"One leaf of a pytree argument lies {_where.text}.",
        expect=expected(times(3, _where)),
        **_common,
    )(leaf)
    _model = times(2, _where)
    _refused = raises(ValueError, MESSAGE, otherwise=_model)
    clause(
        f"{_prefix}.later-call-{_where.name}",
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
