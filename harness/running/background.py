"""Run cells that mostly wait in separate threads, while other cells use the cores.

A case that waits for a heartbeat or a deadline would otherwise block a whole test process.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.model.codec import decode_record, encode_json
from conformance.model.records import Cell, Timing
from harness.running.cells import CellId
from harness.running.runner import Runner
from harness.running.tiers import Run, duration

Facts = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A cell's record, and the facts of its target if it started."""

    record: Cell | Timing
    facts: Facts

    def dump(self) -> str:
        """Return it as text, for another process."""
        return encode_json({"record": self.record, "facts": self.facts}).decode()

    @staticmethod
    def parse(text: str) -> Outcome:
        """Return what `dump` wrote."""
        wire = msgspec.json.decode(text, type=_Wire)
        record = decode_record(bytes(wire.record))
        assert isinstance(record, Cell | Timing)
        return Outcome(record, wire.facts)


class _Wire(msgspec.Struct):
    record: msgspec.Raw
    facts: Facts


class _Thread:
    """A runner with its own thread: a runner serves one case at a time."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.seconds = 0.0  # of what it was given to run
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="background")

    def submit(self, cell: CellId) -> Future[Outcome]:
        return self._executor.submit(self._run, cell)

    def _run(self, cell: CellId) -> Outcome:
        record = self.runner.run(cell)
        return Outcome(record, self.runner.facts.get(cell.target))

    def cancel(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        self._executor.shutdown(wait=True)


class Background:
    """At most `threads` runners, each made by `make_runner` when there is work for it."""

    def __init__(self, make_runner: Callable[[], Runner], threads: int) -> None:
        self._make_runner = make_runner
        self._most = threads
        self._threads: list[_Thread] = []
        self._of_run: dict[Run, _Thread] = {}
        self._outcomes: dict[CellId, Future[Outcome]] = {}

    @property
    def runners(self) -> list[Runner]:
        """Return all runners that were made."""
        return [one.runner for one in self._threads]

    def start(self, cell: CellId, run: Run) -> None:
        """Run a cell as soon as a thread is free; cells that judge the same run share a thread."""
        thread = self._of_run.get(run)
        if thread is None:
            thread = self._of_run[run] = self._free()
            thread.seconds += duration(run).seconds
        self._outcomes[cell] = thread.submit(cell)

    def result(self, cell: CellId) -> Outcome | None:
        """Wait for a cell that was started and return its outcome, or raise its error; None if not
        started.
        """
        future = self._outcomes.pop(cell, None)
        return None if future is None else future.result()

    def close(self) -> None:
        """Abandon what has not ended; the runners' clusters end with their pools."""
        for one in self._threads:
            one.cancel()
        for one in self._threads:
            one.runner.pool.close()
        for one in self._threads:
            one.join()

    def _free(self) -> _Thread:
        if len(self._threads) < self._most:
            self._threads.append(_Thread(self._make_runner()))
            return self._threads[-1]
        return min(self._threads, key=lambda one: one.seconds)
