"""Functions that are called in forked processes: the results' order, and errors."""

from __future__ import annotations

import os
import sys
import time

import pytest

from conformance.commandline.parallel import in_processes


def test_results_come_in_order_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)

    def late(number: int) -> tuple[int, int]:
        time.sleep(0.2 if number == 0 else 0)
        return number, os.getpid()

    found = list(in_processes(late, 5))
    assert [number for number, _ in found] == [0, 1, 2, 3, 4]
    if len(os.sched_getaffinity(0)) > 1:
        assert os.getpid() not in {pid for _, pid in found}


def test_an_error_reaches_the_caller_and_a_later_call_works() -> None:
    def fails(number: int) -> int:
        raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match="number 0"):
        list(in_processes(fails, 3))
    assert list(in_processes(lambda number: number, 3)) == [0, 1, 2]


def test_where_jax_is_imported_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", sys)
    assert set(in_processes(lambda number: os.getpid(), 3)) == {os.getpid()}
