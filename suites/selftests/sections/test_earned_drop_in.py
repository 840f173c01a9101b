"""Wrong JAX that the clauses of `drop_in` must notice, and that no entry may explain.

Each case is a good observation with one fault, judged by the real clause and its entries.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fabricated import NEWEST, verdict_of
from records import Record, leaf, raised, returned

from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.topology import Place, Topology

ONE = Topology(1, 8)
WARNED = [
    {
        "category": "DeprecationWarning",
        "message": "jax.device_put_sharded is deprecated; use jax.device_put instead.",
        "count": 1,
    }
]
PLACE = Place(ONE, 0)

Change = Callable[[dict[str, Record]], Any]


def judged(id: str, steps: list[Record], jax: str = NEWEST) -> str:
    """Return the verdict of a cell of one process, by all entries about it."""
    between = {"warnings": WARNED if jax == "0.9.0" else [], "logs": []}
    return verdict_of(id, names.JAX, ONE, steps, jax=jax, witness=[], between=between)


def changed(steps: list[Record], change: Change) -> list[Record]:
    """The steps after the change, which is given them by name."""
    fresh = {step["name"]: step for step in copy.deepcopy(steps)}
    change(fresh)
    return list(fresh.values())


def placed(kind: str, axis: str, values: Any) -> Record:
    sharding = {"type": kind, "spec": [axis], "mesh": {axis: 8}, "devices": list(range(8))}
    return leaf(values, sharding=sharding)


# The replacement, and the original beside it

ROWS = PLACE.rows(3)


def put(name: str, kind: str = "NamedSharding", **extra: Any) -> Record:
    noted = {"structure": "PyTreeDef(*)", "devices": list(range(8))} | extra
    return returned(placed(kind, "x", ROWS), name=name, extra=noted)


def replaced(original: str | None) -> list[Record]:
    both = [put("replacement"), put("replacement again")]
    return both if original is None else [*both, put("original", original, **{UNLIKE: []})]


UNLIKE = "unlike the replacement"
PUT = "drop_in.sharded.float32"


@pytest.mark.parametrize(
    ("jax", "original"),
    [("0.7.2", "PmapSharding"), ("0.9.0", "NamedSharding"), ("0.12.0.1", None)],
)
def test_what_is_right_conforms(jax: str, original: str | None) -> None:
    assert judged(PUT, replaced(original), jax) == Verdict.CONFORMS


@pytest.mark.parametrize(
    ("jax", "original"),
    [
        ("0.9.0", None),
        ("0.9.0", "PmapSharding"),
        ("0.7.2", "NamedSharding"),
        ("0.13.0", "NamedSharding"),
    ],
)
def test_the_original_is_compared_where_there_is_one(jax: str, original: str | None) -> None:
    assert judged(PUT, replaced(original), jax) == Verdict.DEVIATES


def test_an_original_that_no_longer_warns_deviates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "WARNED", [])
    assert judged(PUT, replaced("NamedSharding"), "0.9.0") == Verdict.DEVIATES


def wrong_original(steps: dict[str, Record]) -> None:
    steps["original"]["value"]["leaves"][0]["values"][0] = -1.0


def unlike(steps: dict[str, Record]) -> None:
    steps["original"]["extra"][UNLIKE] = ["rows: [(0, (0, 1))] and [(1, (0, 1))]"]


def on_other_devices(steps: dict[str, Record]) -> None:
    steps["replacement"]["value"]["leaves"][0]["sharding"]["devices"] = list(range(8))[::-1]


def garbage(steps: dict[str, Record]) -> None:
    steps["replacement again"]["value"]["leaves"][0]["values"][-1] = 0.0


@pytest.mark.parametrize("change", [wrong_original, unlike, on_other_devices, garbage])
def test_another_result_deviates(change: Change) -> None:
    steps = changed(replaced("NamedSharding"), change)
    assert judged(PUT, steps, "0.9.0") == Verdict.DEVIATES


# Refusals

HALF = "drop_in.refusals.sharded.half-the-shards"
SAYS = "axis 0 is partitioned 8 times, but the dimension size is 4 (full shape: (4, 3)"


def refused(message: str = SAYS, type: str = "IndivisibleError") -> list[Record]:
    again = [raised(type, message, name=name) for name in ("replacement", "replacement again")]
    return [returned(ROWS, name="right call"), *again]


def test_a_refusal_that_names_both_numbers_conforms() -> None:
    assert judged(HALF, refused()) == Verdict.CONFORMS


@pytest.mark.parametrize(
    "message", ["4 of the 8 cores are busy", "the shape is wrong", "a sharding of 8 devices", ""]
)
def test_any_other_error_is_no_refusal(message: str) -> None:
    assert judged(HALF, refused(message)) == Verdict.DEVIATES


def test_a_replacement_that_refuses_everything_deviates() -> None:
    steps = [raised("ValueError", SAYS, name="right call"), *refused()[1:]]
    assert judged(HALF, steps) == Verdict.DEVIATES


TWICE = "drop_in.refusals.sharded.twice-the-shards"


@pytest.mark.parametrize(
    ("scale", "verdict"), [(1, Verdict.KNOWN_DEVIATION), (2, Verdict.DEVIATES)]
)
def test_what_is_known_to_come_out_has_known_values(scale: int, verdict: str) -> None:
    both = np.concatenate([ROWS, ROWS]) * scale
    again = [returned(both, name=name) for name in ("replacement", "replacement again")]
    assert judged(TWICE, [returned(ROWS, name="right call"), *again]) == verdict


DEVICE_TWICE = "drop_in.refusals.replicated.device-twice"


@pytest.mark.parametrize(
    ("message", "verdict"), [("", Verdict.KNOWN_DEVIATION), ("no memory", Verdict.DEVIATES)]
)
def test_a_check_without_a_word_is_known_another_is_not(message: str, verdict: str) -> None:
    right = np.stack([ROWS[0]] * 8)
    again = [
        raised("AssertionError", message, name=name, phase="arguments")
        for name in ("replacement", "replacement again")
    ]
    steps = [returned(right, name="right call"), *again]
    assert judged(DEVICE_TWICE, steps) == verdict


# Memory, and where a stack lies

COST = "drop_in.memory.sharded"


def cost(known: float, mine: float) -> list[Record]:
    values = np.repeat(np.arange(1, 9, dtype=np.float32), 2).reshape(8, 2)
    peak = "peak in stacked arrays"
    return [
        returned(name="known", extra={peak: known}),
        returned(name="replacement", extra={peak: mine}),
        returned(values, name="result"),
    ]


@pytest.mark.parametrize(
    ("known", "mine", "verdict"),
    [
        (1, 2, Verdict.CONFORMS),
        (1, 3.8, Verdict.CONFORMS),
        (1, 1.2, Verdict.DEVIATES),
        (1, 2500, Verdict.DEVIATES),
        (2, 3, Verdict.DEVIATES),
    ],
)
def test_a_peak_has_two_bounds(known: float, mine: float, verdict: str) -> None:
    assert judged(COST, cost(known, mine)) == verdict


def stacked(on: list[int], most: int) -> list[Record]:
    rows = PLACE.rows(251)
    first = returned(rows, name="replacement", extra={"the stack": {"on": on, "default": 0}})
    most_rows = {"most rows in one array on the default device": most}
    return [first, returned(rows, name="replacement again", extra=most_rows)]


@pytest.mark.parametrize(
    ("on", "most", "verdict"),
    [([], 1, Verdict.CONFORMS), ([], 8, Verdict.DEVIATES), ([0], 1, Verdict.DEVIATES)],
)
def test_np_stack_goes_past_the_default_device(on: list[int], most: int, verdict: str) -> None:
    assert judged("drop_in.stack.np", stacked(on, most)) == verdict


@pytest.mark.parametrize(
    ("fetched", "verdict"),
    [((0, 0, 8), Verdict.CONFORMS), ((8, 0, 8), Verdict.DEVIATES), ((0, 0, 0), Verdict.DEVIATES)],
)
def test_jnp_stack_fetches_nothing_where_np_stack_is_seen_to(
    fetched: tuple[int, ...], verdict: str
) -> None:
    rows = placed("NamedSharding", "x", PLACE.rows(3)) | {"dtype": "bfloat16"}
    steps = [
        returned(rows, name=name, extra={"arrays fetched to the host": count})
        for name, count in zip(("with jnp", "with jnp again", "with np"), fetched, strict=True)
    ]
    assert judged("drop_in.stack.jax-arrays", steps) == verdict


@pytest.mark.parametrize(("last", "verdict"), [(1, Verdict.CONFORMS), (7, Verdict.DEVIATES)])
def test_a_replica_that_differs_deviates(last: float, verdict: str) -> None:
    row = PLACE.rows(4)[0]
    sharding = {"type": "NamedSharding", "spec": [], "mesh": {"x": 8}, "devices": list(range(8))}
    held = [row.tolist()] * 7 + [[last, *row.tolist()[1:]]]
    steps = [
        returned(leaf(row, sharding=sharding), name=name, extra={"held by each device": held})
        for name in ("replicated", "replicated again")
    ]
    assert judged("drop_in.true-replication", steps) == verdict
