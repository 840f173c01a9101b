"""The size of a worker's machine: told where the system says it, missing where it does not."""

from __future__ import annotations

import os

import pytest

from conformance.worker import host_size


def test_it_is_that_of_this_machine() -> None:
    found = host_size.size()
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["memory"] is not None
    assert found["memory"] > 2**28


def test_what_a_system_does_not_say_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert host_size.size() == {"cores": 3, "memory": None}
