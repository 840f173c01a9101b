"""Observations: nothing of a value is lost on its way from a worker, and texts stay one line."""

from __future__ import annotations

import json
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judged import received
from records import JAX, leaf, observation, raised, returned

from conformance.spec.codes import Code
from conformance.spec.comparing import HALF_TOLERANCE, difference
from conformance.spec.observation import (
    MESSAGE_KEPT,
    Leaf,
    Raised,
    Step,
    Witness,
    from_json,
    to_json,
)

NAN, INF = float("nan"), float("inf")

ARRAYS = {
    "bool": np.array([True, False]),
    "int32": np.array([[1, -2], [3, 2**31 - 1]], np.int32),
    "int64": np.array([-(2**63), 2**63 - 1], np.int64),
    "uint8": np.array([0, 255], np.uint8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "float16": np.array([1.5, 65504, INF], np.float16),
    "float32": np.array([0.1, -0.0, 1e-45, 3.4e38], np.float32),
    "float32_specials": np.array([NAN, INF, -INF, 1], np.float32),
    "float64": np.array([0.1, 5e-324, -INF, NAN]),
    "bfloat16": np.array([1.5, -2], ml_dtypes.bfloat16),
    "bfloat16_specials": np.array([NAN, INF, -INF, 1], ml_dtypes.bfloat16),
    "float8_e4m3fn": np.array([1.5, NAN], ml_dtypes.float8_e4m3fn),
    "int4": np.array([-8, 7], ml_dtypes.int4),
    "complex64": np.array([1 + 2j, -0.5j], np.complex64),
    "complex64_specials": np.array([complex(NAN, INF), complex(-INF, 1)], np.complex64),
    "complex128": np.array([[0.1 + 0.2j]]),
    "no_elements": np.zeros((0, 3), np.float32),
    "no_elements_of_int": np.zeros((2, 0), np.int32),
    "zero_dimensions": np.array(7, np.int16),
    "zero_dimensions_of_nan": np.array(NAN, np.float32),
    "zero_dimensions_of_bool": np.array(True),
    "three_dimensions": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "not_contiguous": np.arange(6, dtype=np.float32).reshape(2, 3).T,
}


def arrived(array: Any) -> Any:
    """The array after its way through JSON."""
    text = json.dumps(to_json(array), allow_nan=False)
    return from_json(json.loads(text), str(array.dtype), list(array.shape))


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_an_array_arrives_as_it_was(array: Any) -> None:
    there = arrived(array)
    assert there.dtype == array.dtype
    assert there.shape == array.shape
    # By bits, as text: nan equals nothing, and -0.0 equals 0.0.
    assert [repr(v) for v in there.reshape(-1)] == [repr(v) for v in array.reshape(-1)]


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_an_array_that_arrived_does_not_differ(array: Any) -> None:
    (step,) = received(observation(returned(leaf(array)))).steps
    assert difference(step.leaves[0], array) is None


def test_a_type_that_numpy_does_not_know_arrives_as_float64() -> None:
    there = from_json([1, "nan", "-inf"], "float6_e9m9", [3])
    assert there.dtype == np.float64
    assert [str(v) for v in there] == ["nan" if v != v else str(v) for v in (1.0, NAN, -INF)]


def test_values_that_do_not_fill_their_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="reshape"):
        from_json([1, 2, 3], "float32", [2, 2])


# What arrives


def test_an_observation_is_read() -> None:
    step = returned(np.zeros(2, np.float32), name="first call") | {
        "warnings": [{"category": "UserWarning", "message": "old", "count": 2}],
        "logs": [{"logger": "jax", "level": "WARNING", "message": "slow"}],
        "extra": {"copies": 0},
    }
    error = raised("TypeError", "no", name="second call", bases=("Exception",), phase="trace")
    seen = received(observation(step, error, process=1))
    assert (seen.process, seen.processes, seen.jax) == (1, 2, JAX)
    assert seen.witness == (Witness("new pmap", ("NamedSharding",), ("shard_map",)),)
    first, second = seen.steps
    assert first.warnings == ({"category": "UserWarning", "message": "old", "count": 2},)
    assert first.logs == ({"logger": "jax", "level": "WARNING", "message": "slow"},)
    assert first.extra == {"copies": 0}
    assert first.raised is None
    assert second.leaves == ()
    assert second.raised == Raised(
        "TypeError", ("Exception",), "trace", "no", ("pjit.py:_resolve_and_lower",)
    )


def test_a_leaf_keeps_what_is_known_of_it() -> None:
    record = leaf(np.zeros((2, 2), np.float32), path="['a']", shape=[8, 2], weak_type=True)
    (step,) = received(observation(returned(record))).steps
    (one,) = step.leaves
    assert (one.path, one.type, one.shape, one.dtype) == ("['a']", "ArrayImpl", (8, 2), "float32")
    assert (one.weak_type, one.committed) == (True, True)
    assert one.local is not None
    assert one.local.shape == (2, 2)
    assert one.sharding == record["sharding"]


def test_a_leaf_without_values_has_none() -> None:
    record = {"path": "", "type": "str", "shape": [], "dtype": "", "text": "'abc'"}
    (step,) = received(observation(returned(record))).steps
    assert step.leaves[0].local is None
    assert str(step.leaves[0]) == "'abc'"


@pytest.mark.parametrize("key", ["process", "processes", "jax", "steps", "witness"])
def test_what_is_no_observation_is_refused(key: str) -> None:
    record = observation()
    del record[key]
    with pytest.raises(KeyError, match=key):
        received(record)


def test_a_cluster_is_clean_only_after_steps_that_returned() -> None:
    assert received(observation()).clean
    assert not received(observation(returned(), raised(name="second call"))).clean
    assert not received(observation(raised(), returned(name="second call"))).clean


# Texts


def test_an_exception_is_said_in_one_line() -> None:
    error = Raised("ValueError", (), "lower", "one\n  line\tonly\n\n.")
    assert str(error) == "raised ValueError (phase lower): one line only ."


def test_a_long_message_is_cut() -> None:
    at_most = Raised("ValueError", (), "lower", "x" * MESSAGE_KEPT)
    assert str(at_most).endswith("x" * MESSAGE_KEPT)
    longer = Raised("ValueError", (), "lower", "x" * (MESSAGE_KEPT + 1))
    assert str(longer).endswith(": " + "x" * MESSAGE_KEPT + "…")


def test_a_large_array_is_said_in_one_short_line() -> None:
    rows = np.arange(4096, dtype=np.float32).reshape(64, 64)
    text = str(Leaf("", "ArrayImpl", rows.shape, "float32", rows))
    assert text.startswith("float32[64, 64] [[0.000e+00, 1.000e+00, ..., ")
    assert "\n" not in text
    assert len(text) < 250


def test_a_leaf_says_its_own_shape_and_what_is_here_of_it() -> None:
    one = Leaf("", "ArrayImpl", (8, 1), "int32", np.array([[1], [2]], np.int32))
    assert str(one) == "int32[8, 1] [[1], [2]]"
    assert str(Leaf("", "ArrayImpl", (8,), "int32", None)).startswith("ArrayImpl int32[8] without")


def test_a_step_says_how_it_ended() -> None:
    one = Leaf("", "ArrayImpl", (1,), "int32", np.array([1], np.int32))
    assert str(Step("first call", (one, one))) == f"returned {one}, {one}"
    assert str(Step("first call")) == "returned nothing"
    error = Raised("ValueError", (), "trace", "no")
    assert str(Step("first call", (), error)) == str(error)


# Differences
@pytest.mark.parametrize(
    ("case", "has", "want", "dtype", "said"),
    [
        ("a_value", [1, 2], [1, 3], "int32", "same shape, wrong values: int32[2] [1, 2] in"),
        ("a_sign", [1.0, -2.0], [1.0, 2.0], "float32", "same shape, wrong values"),
        ("a_nan_in_place_of_zero", [NAN], [0.0], "float32", "same shape, wrong values"),
        ("zero_in_place_of_a_nan", [0.0], [NAN], "float32", "same shape, wrong values"),
        ("a_sign_of_infinity", [INF], [-INF], "float32", "same shape, wrong values"),
        ("something_in_place_of_zero", [1e-30], [0.0], "float32", "same shape, wrong values"),
        ("an_imaginary_part", [1 + 1j], [1 + 2j], "complex64", "same shape, wrong values"),
        ("a_truth", [True], [False], "bool", "same shape, wrong values"),
        ("a_small_step_of_an_integer", [10**9], [10**9 + 1], "int32", "wrong values"),
        ("a_broadcast", [[1, 1]], [1, 1], "int32", "shape [1, 2] in place of [2]"),
        ("an_empty", [], [1], "int32", "shape [0] in place of [1]"),
    ],
)
def test_is_said_for(case: str, has: list[Any], want: list[Any], dtype: str, said: str) -> None:
    text = difference(received_leaf(np.array(has, dtype)), np.array(want, dtype))
    assert text is not None
    assert said in text
    assert "\n" not in text


def test_is_a_dtype_where_the_values_agree() -> None:
    text = difference(received_leaf(np.array([1, 2], np.int32)), np.array([1.0, 2.0]))
    assert text is not None
    assert text.code == Code.DTYPE
    assert re.findall(r"[a-z]+\d+", text)[:2] == ["int32", "float64"]


@pytest.mark.parametrize(
    ("case", "has", "want", "dtype", "said"),
    [
        ("eight", [8.0, 16.0], [1.0, 2.0], "float32", ", 8 times the right ones: "),
        ("an_eighth", [1.0, 2.0], [8.0, 16.0], "float32", ", 1/8 of the right ones: "),
        ("minus_one", [1.0, -2.0], [-1.0, 2.0], "float32", ", -1 times the right ones: "),
        ("integers", [3, 0], [1, 0], "int32", ", 3 times the right ones: "),
        ("no_one_factor", [8.0, 2.0], [1.0, 2.0], "float32", ": "),
        ("nothing_right", [1.0, 2.0], [0.0, 0.0], "float32", ": "),
        ("nothing_seen", [0.0, 0.0], [1.0, 2.0], "float32", ": "),
        ("not_finite", [INF, 2.0], [1.0, 2.0], "float32", ": "),
    ],
)
def test_names_a_factor(case: str, has: list[Any], want: list[Any], dtype: str, said: str) -> None:
    text = difference(received_leaf(np.array(has, dtype)), np.array(want, dtype))
    assert text is not None
    assert text.code == Code.VALUE
    assert f"{said}{dtype}[2]" in text


@pytest.mark.parametrize(
    ("case", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)]
)
def test_forgives_more_where_numbers_are_short(case: str, dtype: Any) -> None:
    want = np.array([1, 2], dtype)
    assert difference(received_leaf(want * dtype(1 + HALF_TOLERANCE / 2)), want) is None
    assert difference(received_leaf(want * dtype(1 + HALF_TOLERANCE * 3)), want) is not None


def received_leaf(array: Any) -> Leaf:
    (step,) = received(observation(returned(leaf(array)))).steps
    return step.leaves[0]
