"""Threads that are stuck are told from threads that are slow, without a deadline."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.worker.deadlocks import Deadlock, run_all, wait_until_blocked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def control() -> int:
    """Work of the watching thread."""
    return sum(range(1000))


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Yield an event that ends the threads that a test leaves behind."""
    event = threading.Event()
    yield event
    event.set()


def test_threads_that_wait_for_ever_are_a_deadlock(released: threading.Event) -> None:
    done: list[int] = []

    def stuck() -> None:
        released.wait()

    def quick() -> None:
        done.append(1)

    with pytest.raises(Deadlock, match=r"^2 of 3 threads "):
        run_all([stuck, quick, stuck], control)
    assert done == [1]


def test_threads_that_finish_are_none() -> None:
    done: list[int] = []
    run_all([lambda: done.append(1)] * 5, control)
    assert len(done) == 5


def test_a_thread_that_works_is_none_however_long_it_takes() -> None:
    began = time.process_time()

    def busy() -> None:
        while time.process_time() - began < 1.5:
            sum(range(100))

    run_all([busy, lambda: time.sleep(0.01)], control)


def test_a_thread_that_goes_on_between_sleeps_is_none() -> None:
    turns: list[int] = []

    def one_after_the_other(turn: int) -> None:
        time.sleep(0.3 * turn)
        turns.append(turn)

    run_all([lambda k=k: one_after_the_other(k) for k in range(5)], control)
    assert sorted(turns) == [*range(5)]


def test_a_thread_that_waits_for_an_event_is_blocked(released: threading.Event) -> None:
    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(threading.get_native_id).result()
        call = pool.submit(released.wait)
        wait_until_blocked(thread, call.done, control)
        assert not call.done()
        released.set()


def test_a_thread_that_works_is_waited_for_until_it_ends() -> None:
    def busy() -> None:
        while time.thread_time() < 1.5:
            sum(range(100))

    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(threading.get_native_id).result()
        call = pool.submit(busy)
        wait_until_blocked(thread, call.done, control)
        assert call.done()
