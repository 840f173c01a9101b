"""The zygotes that a fleet ends when it has too many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.running import fleet
from harness.running.fleet import MOST_ZYGOTES, LocalFleet
from harness.targets.target import Target


class FakeLauncher:
    """Counts clusters as a launcher does, and starts nothing."""

    def __init__(self, *_: Any) -> None:
        self.clusters = 0
        self.closed = False

    @property
    def idle(self) -> bool:
        return self.clusters == 0

    def count(self, more: int) -> None:
        self.clusters += more

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(fleet, "LocalLauncher", FakeLauncher)
    made = LocalFleet(())
    yield made
    made.close()


def target(number: int) -> Target:
    return Target(f"jax==0.9.{number}", Path(f"/targets/{number}/bin/python"))


def test_of_many_zygotes_the_least_recently_used_ends(local: LocalFleet) -> None:
    made: list[Any] = [local.launcher(target(number)) for number in range(MOST_ZYGOTES + 1)]
    assert [one.closed for one in made] == [True] + [False] * MOST_ZYGOTES


def test_a_zygote_by_which_a_cluster_starts_is_not_ended(local: LocalFleet) -> None:
    with local.starting(target(0)) as first:
        made: list[Any] = [local.launcher(target(number)) for number in range(1, MOST_ZYGOTES + 1)]
        assert not first.closed  # type: ignore[attr-defined]
        assert made[0].closed
    local.launcher(target(MOST_ZYGOTES + 1))
    assert first.closed  # type: ignore[attr-defined]
