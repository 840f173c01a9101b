"""Admission: permits are shared by all processes of the machine and come back when one dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from harness.running import admission
from harness.running.admission import Admission, NoRoom, process_capacity, start_capacity

CAPACITY = 3
SOON_S = 30.0  # for what takes milliseconds on an idle machine

HOLD = """
import sys
from pathlib import Path
from harness.running.admission import Admission

permits = Admission(Path(sys.argv[1]), "process", int(sys.argv[3])).acquire(int(sys.argv[2]), 60)
print("held", flush=True)
sys.stdin.read()
"""

Hold = Callable[[int], subprocess.Popen[str]]


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Starts a process that asks for permits and, once it has them, says so and keeps them."""
    started: list[subprocess.Popen[str]] = []

    def start(count: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path), str(count), str(CAPACITY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ours(folder: Path, progress: Callable[[str], None] = lambda _: None) -> Admission:
    return Admission(folder, "process", CAPACITY, progress)


def test_permits_of_another_process_are_not_ours(tmp_path: Path, hold: Hold) -> None:
    assert next_line(hold(2)) == "held"
    began = time.monotonic()
    with pytest.raises(NoRoom, match=r"process permits .* 0\.3 s"):
        ours(tmp_path).acquire(2, timeout_s=0.3)
    assert 0.3 <= time.monotonic() - began < SOON_S
    ours(tmp_path).acquire(1, timeout_s=SOON_S).release()


def test_a_killed_process_gives_its_permits_back(tmp_path: Path, hold: Hold) -> None:
    holder = hold(CAPACITY)
    assert next_line(holder) == "held"
    with pytest.raises(NoRoom):
        ours(tmp_path).acquire(1, timeout_s=0.1)
    holder.kill()
    holder.wait()
    ours(tmp_path).acquire(CAPACITY, timeout_s=SOON_S).release()


def test_who_waits_gets_the_permits_when_they_are_released(tmp_path: Path, hold: Hold) -> None:
    permits = ours(tmp_path).acquire(CAPACITY)
    waiter = hold(2)
    time.sleep(1.0)
    assert waiter.poll() is None
    permits.release()
    assert next_line(waiter) == "held"
    with pytest.raises(NoRoom):
        ours(tmp_path).acquire(2, timeout_s=0.1)


def test_who_waits_for_many_holds_none_meanwhile(tmp_path: Path, hold: Hold) -> None:
    permits = ours(tmp_path).acquire(2)
    waiter = hold(CAPACITY)
    for _ in range(15):  # the waiter comes up meanwhile, and asks every 50 ms
        ours(tmp_path).acquire(1, timeout_s=SOON_S).release()
        time.sleep(0.1)
    assert waiter.poll() is None
    permits.release()
    assert next_line(waiter) == "held"


def test_more_than_there_are_is_refused_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "time", None)
    with pytest.raises(NoRoom, match=r"^4 processes .*\(3,.*--topology"):
        ours(tmp_path).acquire(CAPACITY + 1)


def test_a_long_wait_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "PATIENCE_S", 0.1)
    told: list[str] = []
    with ours(tmp_path).acquire(CAPACITY), pytest.raises(NoRoom):
        ours(tmp_path, told.append).acquire(1, timeout_s=1.5)
    (line,) = told
    assert line.endswith("(process)")


def test_a_short_wait_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "PATIENCE_S", SOON_S)
    told: list[str] = []
    with ours(tmp_path).acquire(CAPACITY), pytest.raises(NoRoom):
        ours(tmp_path, told.append).acquire(1, timeout_s=0.2)
    assert told == []


def test_permits_come_back_when_their_user_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ours(tmp_path).acquire(CAPACITY):
        raise ZeroDivisionError
    ours(tmp_path).acquire(CAPACITY, timeout_s=0.2).release()


def test_a_process_that_stops_while_it_takes_does_not_stop_the_others(tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        FileLock(tmp_path / "process.taking"),
        pytest.raises(NoRoom),
    ):
        ours(tmp_path).acquire(1, timeout_s=0.3)
    assert time.monotonic() - began < SOON_S


def test_kinds_do_not_share_permits(tmp_path: Path) -> None:
    with ours(tmp_path).acquire(CAPACITY):
        Admission(tmp_path, "start", 1).acquire(1, timeout_s=0.2).release()


def test_this_machine_takes_at_least_one_cluster() -> None:
    assert process_capacity() >= 1
    assert start_capacity() >= 1
