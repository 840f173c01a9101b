"""`starving`: the time in which a process could have run and had no core, and no other time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.worker.starving import Delays, delays, starved

IDLE = "import time; print('begun', flush=True); time.sleep(600)"
BUSY = "print('begun', flush=True)\nwhile True: pass"
LOOKED_S = 1.0


@pytest.mark.parametrize(
    ("case", "before", "after", "seconds"),
    [
        ("nothing_known", [], [], 0.0),
        ("no_threads", [{}], [{}], 0.0),
        ("nothing_waited", [{"1": 2.0}], [{"1": 2.0}], 0.0),
        ("its_most_delayed_thread", [{"1": 1.0, "2": 5.0}], [{"1": 4.0, "2": 6.0}], 3.0),
        ("a_thread_that_is_new", [{"1": 1.0}], [{"1": 1.0, "2": 0.5}], 0.5),
        ("a_process_that_is_gone", [{"1": 1.0}], [{}], 0.0),
        (
            "processes_that_wait_in_turn",
            [{"1": 0.0}, {"1": 0.0}],
            [{"1": 1.0}, {"1": 2.0}],
            3.0,
        ),
    ],
)
def test_seconds(case: str, before: list[Delays], after: list[Delays], seconds: float) -> None:
    assert starved(before, after) == pytest.approx(seconds)


def test_other_processes_are_no_answer() -> None:
    with pytest.raises(ValueError, match="zip"):
        starved([{}], [{}, {}])


@contextmanager
def started(program: str, count: int, core: int) -> Iterator[list[int]]:
    """So many processes of a program, all on one core, once each has begun."""

    def on_the_core() -> None:
        os.sched_setaffinity(0, {core})

    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, preexec_fn=on_the_core
        )
        for _ in range(count)
    ]
    try:
        for one in running:
            assert one.stdout is not None
            assert one.stdout.readline() == b"begun\n"
        yield [one.pid for one in running]
    finally:
        for one in running:
            one.kill()
            one.communicate()


def waited(pid: int, wall_s: float) -> float:
    before = [delays(pid)]
    time.sleep(wall_s)
    return starved(before, [delays(pid)])


def test_who_shares_a_core_waits_and_who_sleeps_does_not() -> None:
    core = min(os.sched_getaffinity(0))
    with started(BUSY, 3, core) as busy, started(IDLE, 1, core) as idle:
        time.sleep(0.1)  # from what it says to its sleep
        assert waited(busy[0], LOOKED_S) > LOOKED_S / 4
        assert waited(idle[0], LOOKED_S) < LOOKED_S / 10


@pytest.mark.parametrize("text", ["", "12", "12 x 3", None], ids=repr)
def test_what_the_system_does_not_count_is_no_delay(tmp_path: Path, text: str | None) -> None:
    thread = tmp_path / "7" / "task" / "7"
    thread.mkdir(parents=True)
    if text is not None:
        (thread / "schedstat").write_text(text, encoding="ascii")
    assert delays(7, tmp_path) == {}
    assert delays(8, tmp_path) == {}


def test_nanoseconds_in_the_run_queue_are_counted(tmp_path: Path) -> None:
    thread = tmp_path / "7" / "task" / "9"
    thread.mkdir(parents=True)
    (thread / "schedstat").write_text("5 2500000000 3\n", encoding="ascii")
    assert delays(7, tmp_path) == {"9": pytest.approx(2.5)}
