"""When a target begins to import JAX before the catalogue is loaded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from harness.plugin import hooks
from harness.targets.target import Target

CURRENT = SimpleNamespace(target=Target("current", Path("/envs/bin/python")))
MISSING = SimpleNamespace(target=None)


def config(*, processes: int | None = None, collect: bool = False) -> Any:
    return SimpleNamespace(
        getoption=lambda name, default: {"numprocesses": processes}.get(name, default),
        option=SimpleNamespace(collectonly=collect),
    )


def chosen(*targets: Any, clauses: tuple[str, ...] = ("rank",), hosts: Any = None) -> Any:
    return SimpleNamespace(targets=targets, clauses=clauses, hosts=hosts, platform="cpu")


@pytest.mark.parametrize(
    ("name", "given", "options", "begins"),
    [
        ("named clauses on one target", config(), chosen(CURRENT), True),
        ("a target that is missing beside it", config(), chosen(MISSING, CURRENT), True),
        ("whatever is collected", config(), chosen(CURRENT, clauses=()), False),
        ("nothing is run", config(collect=True), chosen(CURRENT), False),
        ("other processes run it", config(processes=2), chosen(CURRENT), False),
        ("other hosts run it", config(), chosen(CURRENT, hosts=object()), False),
        ("one of two targets is first", config(), chosen(CURRENT, CURRENT), False),
        ("no target", config(), chosen(MISSING), False),
    ],
)
def test_a_target_begins_early_if_this_process_surely_uses_it(
    name: str, given: Any, options: Any, begins: bool
) -> None:
    with mock.patch.object(hooks, "LocalFleet") as fleet:
        begun = hooks._begun(given, options)
    assert (begun is not None) == begins, name
    assert fleet.return_value.launcher.return_value.begin.call_count == begins, name
