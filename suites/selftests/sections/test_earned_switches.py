"""Wrong JAX that the clauses of `switches` must notice, and that no entry may explain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fabricated import verdict_of
from judged import received
from real import catalogue
from records import Record, gave, leaf, observation, raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.topology import Place, Topology
from conformance.worker.child_programs import ROWS

CLAUSES = catalogue().clauses
ONE = Topology(1, 8)
OLD, NEW = "legacy pmap -> PmapSharding", "new pmap -> NamedSharding"
TEXT = (
    "Setting `jax_pmap_shmap_merge` is deprecated in JAX v0.9.0 and will be removed in JAX v0.10.0."
)
GONE = "AttributeError: Unrecognized config option: jax_pmap_shmap_merge"


def verdict(id: str, column: str, jax: str, *steps: Record) -> str:
    """Return the verdict of a cell of one process, by all entries about it."""
    return verdict_of(id, column, ONE, steps, jax=jax, witness=[])


def warning(message: str = TEXT, shown: int = 0) -> Record:
    return {"category": "DeprecationWarning", "message": message, "count": 3, "shown": shown}


def program(*ran: str, scale: float = 1, warned: tuple[Record, ...] = ()) -> Record:
    """Return the record of a child's program that returned."""
    rows = np.array(ROWS, np.float32)
    values = [(rows + rows.sum(0)) * scale for _ in ran]
    return returned(*values, name="the program", extra={"ran": list(ran), "warned": list(warned)})


def failed(message: str, *warned: Record) -> Record:
    """A child's program that did not return."""
    step = raised("ChildError", message, name="the program", phase="unknown")
    return step | {"extra": {"warned": list(warned)}}


DEFAULT = "switches.default"


@pytest.mark.parametrize(
    ("jax", "ran", "expected"),
    [
        ("0.7.2", OLD, Verdict.CONFORMS),
        ("0.9.0", NEW, Verdict.CONFORMS),
        ("0.7.2", NEW, Verdict.DEVIATES),
        ("0.13.0", OLD, Verdict.DEVIATES),
    ],
)
def test_the_default_is_known_by_release(jax: str, ran: str, expected: str) -> None:
    assert verdict(DEFAULT, names.JAX, jax, program(ran, ran)) == expected


def test_the_default_must_compute_too() -> None:
    wrong = program(NEW, NEW, scale=2)
    assert verdict(DEFAULT, names.JAX, "0.9.0", wrong) == Verdict.DEVIATES


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (program(OLD, OLD, warned=(warning(),)), Verdict.CONFORMS),
        (failed("ImportError: no module named scipy", warning()), Verdict.DEVIATES),
        (program(NEW, NEW, warned=(warning(),)), Verdict.DEVIATES),
        (program(OLD, OLD, warned=(warning("jax_pmap_shmap_merge"),)), Verdict.DEVIATES),
        (program(OLD, OLD), Verdict.DEVIATES),
    ],
)
def test_a_program_is_warned_and_runs(step: Record, expected: str) -> None:
    id = "switches.deprecation.config-update"
    assert verdict(id, names.LEGACY_PMAP, "0.9.0", step) == expected


@pytest.mark.parametrize(
    ("jax", "step", "expected"),
    [
        ("0.9.0", program(OLD, OLD), Verdict.CONFORMS),
        ("0.9.0", failed(GONE), Verdict.DEVIATES),
        ("0.12.0.1", failed(GONE), Verdict.CONFORMS),
        ("0.12.0.1", failed("ImportError: jax_pmap_shmap_merge"), Verdict.DEVIATES),
        ("0.12.0.1", program(OLD, OLD), Verdict.DEVIATES),
    ],
)
def test_the_old_pmap_runs_or_is_said_to_be_gone(jax: str, step: Record, expected: str) -> None:
    id = "switches.obeyed-or-told.config-update"
    assert verdict(id, names.LEGACY_PMAP, jax, step) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (program(NEW, NEW), Verdict.KNOWN_DEVIATION),
        (program(NEW), Verdict.DEVIATES),
        (program(NEW, NEW, scale=3), Verdict.DEVIATES),
        (failed("ImportError: no module named scipy"), Verdict.DEVIATES),
    ],
)
def test_a_variable_that_is_ignored_changes_nothing_else(step: Record, expected: str) -> None:
    id = "switches.environment.digit"
    assert verdict(id, names.LEGACY_PMAP, "0.12.0.1", step) == expected


REMOVED = "AttributeError: jax.device_put_sharded is deprecated; use jax.device_put instead. See"
WARNS = "jax.device_put_sharded is deprecated; use jax.device_put instead."
NAMED = {"path": "", "type": "str", "shape": [], "dtype": "", "text": "'device_put_sharded'"}


@pytest.mark.parametrize(
    ("jax", "step", "expected"),
    [
        ("0.12.0.1", failed(REMOVED), Verdict.CONFORMS),
        ("0.12.0.1", failed("AttributeError: https://example.org"), Verdict.DEVIATES),
        ("0.9.0", failed(REMOVED), Verdict.DEVIATES),
    ],
)
def test_a_name_that_is_gone_says_what_to_use(jax: str, step: Record, expected: str) -> None:
    assert verdict("switches.device-put-sharded.attribute", names.JAX, jax, step) == expected


@pytest.mark.parametrize(
    ("message", "shown", "expected"),
    [
        (WARNS, 1, Verdict.CONFORMS),
        (WARNS, 0, Verdict.DEVIATES),
        ("device_put_sharded", 1, Verdict.DEVIATES),
    ],
)
def test_a_name_that_goes_says_what_to_use(message: str, shown: int, expected: str) -> None:
    step = returned(NAMED, name="the program", extra={"warned": [warning(message, shown)]})
    assert verdict("switches.device-put-sharded.attribute", names.JAX, "0.9.0", step) == expected


def twice(make: Any) -> list[Record]:
    return [make(name) for name in ("first call", "second call")]


@pytest.mark.parametrize(
    ("count", "every_one", "expected"),
    [(8, True, Verdict.CONFORMS), (4, True, Verdict.DEVIATES), (8, False, Verdict.DEVIATES)],
)
def test_a_mesh_has_all_devices(count: int, every_one: bool, expected: str) -> None:
    mesh = {"all": every_one, "axes": ["Explicit"]}
    steps = twice(lambda name: returned(np.array([count]), name=name, extra={"mesh": mesh}))
    assert verdict("switches.names.axistype", names.JAX, "0.12.0.1", *steps) == expected


@pytest.mark.parametrize(
    ("spec", "scale", "expected"),
    [
        (["a"], 1, Verdict.CONFORMS),
        (["a", "b"], 1, Verdict.DEVIATES),
        (["a"], 2, Verdict.DEVIATES),
    ],
)
def test_a_product_is_right_and_sharded_as_said(spec: list[str], scale: int, expected: str) -> None:
    left = np.arange(1, 33, dtype=np.float32).reshape(8, 4)
    values = left @ np.arange(1, 33, dtype=np.float32).reshape(4, 8) * scale
    sharding = {"type": "NamedSharding", "spec": spec, "mesh": {"a": 4}, "devices": [0]}
    steps = twice(lambda name: returned(leaf(values, sharding=sharding), name=name))
    assert verdict("switches.names.sharded-matmul", names.JAX, "0.8.3", *steps) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("make_mesh() got an unexpected keyword argument 'shape'", Verdict.KNOWN_DEVIATION),
        ("make_mesh() got an unexpected keyword argument 'axis_names'", Verdict.DEVIATES),
    ],
)
def test_a_parameter_that_is_missing_is_the_one_that_is_known(message: str, expected: str) -> None:
    steps = twice(lambda name: raised("TypeError", message, name=name, phase="unknown"))
    assert verdict("switches.names.make-mesh", names.JAX, "0.12.0.1", *steps) == expected


BODY = ["squeeze", "mul", "broadcast_in_dim"]
TRACED = {"primitives": ["jit", "shard_map", *BODY]}
GLOBAL = ["host_local_array_to_global_array", *TRACED["primitives"]]


def trace_holds(implementation: str, scale: int, *traces: Record) -> bool:
    """Return whether two calls and these traces are as expected of the implementation."""
    expected = CLAUSES["switches.built-on-shard-map"].expect[implementation]
    steps = twice(lambda name: returned(Place(ONE, 0).rows(2) * scale, name=name))
    seen = received(observation(*steps, *traces, topology=ONE))
    return all(finding.holds for finding in expected.check(ONE, [seen]))


def traces(*primitives: str) -> list[Record]:
    extra = {"primitives": list(primitives)}
    return [gave(None, name=name, extra=extra) for name in ("first trace", "second trace")]


@pytest.mark.parametrize(
    ("primitives", "of"),
    [
        (["jit", "shard_map", *BODY], names.NEW_PMAP),
        (["pjit", "shard_map", *BODY], names.NEW_PMAP),
        (["jit", "shard_map", "squeeze", "pvary", "mul", "broadcast_in_dim"], names.NEW_PMAP),
        ([*GLOBAL, "global_array_to_host_local_array"], names.NEW_PMAP),
        (["xla_pmap", "mul"], names.LEGACY_PMAP),
        (["jit", *BODY], ""),
        (["shard_map", *BODY], ""),
        (["jit", "shard_map", *BODY[:2]], ""),
        (["jit", "shard_map", *BODY, "psum"], ""),
        (["jit", "xla_pmap", "shard_map", *BODY], ""),
        (GLOBAL, ""),
        (["xla_pmap", "mul", "mul"], ""),
        ([], ""),
    ],
)
def test_a_map_is_traced_to_what_it_is_made_of(primitives: list[str], of: str) -> None:
    for implementation in (names.LEGACY_PMAP, names.NEW_PMAP):
        assert trace_holds(implementation, 2, *traces(*primitives)) is (of == implementation)


def test_what_a_map_is_traced_to_must_compute_too() -> None:
    assert trace_holds(names.NEW_PMAP, 2, *traces(*TRACED["primitives"]))
    assert not trace_holds(names.NEW_PMAP, 3, *traces(*TRACED["primitives"]))


def test_a_trace_that_fails_is_none() -> None:
    good, _ = traces(*TRACED["primitives"])
    bad = raised("ValueError", "no", name="second trace") | {"extra": TRACED}
    assert not trace_holds(names.NEW_PMAP, 2, good, bad)
    assert not trace_holds(names.NEW_PMAP, 2, good)


CHUNKED = "ShardingSpec((Chunked(8), NoSharding()), (ShardedAxis(axis=0),))"


@pytest.mark.parametrize(
    ("kind", "spec", "of"),
    [
        ("PmapSharding", CHUNKED, names.LEGACY_PMAP),
        ("PmapSharding", CHUNKED.replace("8", "4"), ""),
        ("NamedSharding", ["i"], names.NEW_PMAP),
        ("NamedSharding", ["i", None], names.NEW_PMAP),
        ("NamedSharding", [], ""),
        ("NamedSharding", [None, "i"], ""),
    ],
)
def test_a_maps_output_lies_as_its_implementation_lays_it(kind: str, spec: Any, of: str) -> None:
    values = Place(ONE, 0).rows(2) * 2
    sharding = {"type": kind, "spec": spec, "mesh": {"i": 8}, "devices": list(range(8))}
    steps = twice(lambda name: returned(leaf(values, sharding=sharding), name=name))
    seen = received(observation(*steps, topology=ONE))
    for implementation in (names.LEGACY_PMAP, names.NEW_PMAP):
        expected = CLAUSES["switches.sharding-of-outputs"].expect[implementation]
        found = all(finding.holds for finding in expected.check(ONE, [seen]))
        assert found is (of == implementation)
