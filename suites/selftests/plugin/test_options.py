"""The extras of a target: all if it can have them, otherwise those that it can have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from harness.plugin import options
from harness.targets.target import Target, TargetError, parse_spec


def provisioning(*impossible: str) -> Any:
    """A `provision` that has everything but the extras named."""

    def provision(spec: Any, *, extras: Sequence[str] = (), progress: Any = None) -> Target:
        if set(extras) & set(impossible):
            raise TargetError(f"no such package for {spec}\nmore of it")
        return Target(str(spec), Path("/envs/bin/python"), tuple(extras))

    return provision


@pytest.mark.parametrize(
    ("name", "asked", "impossible", "had"),
    [
        ("none asked for", (), (), ()),
        ("all there", ("flax", "equinox"), (), ("flax", "equinox")),
        ("the first missing", ("flax", "equinox"), ("flax",), ("equinox",)),
        ("one of three", ("flax", "equinox", "absl-py"), ("equinox",), ("flax", "absl-py")),
        ("all missing", ("flax", "equinox"), ("flax", "equinox"), ()),
        ("the only one missing", ("flax",), ("flax",), ()),
    ],
)
def test_a_target_gets_the_extras_that_it_can_have(
    name: str, asked: tuple[str, ...], impossible: tuple[str, ...], had: tuple[str, ...]
) -> None:
    said: list[str] = []
    with mock.patch.object(options, "provision", provisioning(*impossible)):
        target = options._with_extras(parse_spec("jax==0.9.0"), asked, said.append)
    assert target.extras == had, name
    for one in impossible:
        assert any(one in line for line in said), name
    assert not any("more of it" in line for line in said)
