"""Tests the options that describe a call of a user's function."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from conformance.spec.names import COLUMNS, JAX
from harness.commandline.command import UsageError
from harness.commandline.function_options import check_implementations, parse_call

OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("inputs", "in_axes", "out_axes", "axis_name", "donate")),
    "function": "json:dumps",
    "args": "f32[n,8] f32[n,8]",
    "mapped": False,
    "feed": False,
    "seed": 0,
    "deadline": 60.0,
}


def test_the_last_argument_can_be_donated_and_none_after_it() -> None:
    assert parse_call(argparse.Namespace(**OPTIONS | {"donate": "0,1"})).donate == (0, 1)
    with pytest.raises(UsageError, match="--donate 2: there are 2 arguments, from 0"):
        parse_call(argparse.Namespace(**OPTIONS | {"donate": "2"}))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"out_axes": "0,1"}, "give one axis"),
        ({"inputs": "json:loads"}, "give one of them"),
        ({"args": None}, "no arguments"),
        ({"mapped": True, "in_axes": "0"}, "--in-axes: --mapped runs a function that maps"),
    ],
)
def test_options_that_contradict_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_call(argparse.Namespace(**OPTIONS | changed))


def test_an_implementation_that_does_not_exist_is_refused() -> None:
    names = [name for name in COLUMNS if name != JAX]
    assert check_implementations([], mapped=False) == names
    assert check_implementations(names[:1], mapped=False) == names[:1]
    with pytest.raises(UsageError, match=f"did you mean {names[1]}"):
        check_implementations([names[1][:-1]], mapped=False)
    with pytest.raises(UsageError, match="a function that maps by itself is run as it is"):
        check_implementations([names[-1]], mapped=True)
