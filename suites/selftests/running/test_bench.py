"""Tests what the benchmark of the harness measures, on a pool that runs nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.running import bench

WARMING_S, CASE_S = 5.0, 0.25  # seconds beside the probe, of the first cases and of the others


class FakePool:
    """A pool whose cases last as long as told; with `fault` they fail."""

    fault = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cases = 0

    def facts(self, *_: Any) -> dict[str, str]:
        return {"jax": "0.9.0"}

    def release(self) -> None: ...

    def close(self) -> None: ...

    def run(self, target: Any, topology: Any, case: Any) -> Any:
        if case.parameters:  # that of the recycling, which dies
            return None
        self.cases += 1
        own_s = WARMING_S if self.cases <= bench.UNCOUNTED_CASES else CASE_S
        result = SimpleNamespace(
            clean=not self.fault, fault=self.fault, seconds=1 + own_s, probe_seconds=1.0
        )
        return SimpleNamespace(result=result)


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "Pool", FakePool)
    monkeypatch.setattr(bench, "provision", lambda *_, **__: None)


def test_the_first_cases_are_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    bench.measure("current", print)
    lines = [line for line in capsys.readouterr().out.splitlines() if "own cost" in line]
    assert len(lines) == len(bench.AIMS)
    for line in lines:
        assert f"({CASE_S * 1000:.2f} to {CASE_S * 1000:.2f}, n={bench.CASES})" in line
        assert line.endswith("above")


def test_a_case_that_fails_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakePool, "fault", "process 0 died")
    with pytest.raises(SystemExit, match="the benchmark's own case failed: process 0 died"):
        bench.measure("current", print)
