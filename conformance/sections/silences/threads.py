"""Threads that read one output, or call one mapped function, at the same time."""

from __future__ import annotations

import functools
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from conformance.sections.silences.answers import doubled
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import in_steps, returns, steps, twice
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.deadlocks import run_all, wait_until_blocked
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row
THREADS = 10
READS = 16  # of each thread


@described("what each thread read: the rows in turn, each from a row further on")
def read(place: Place) -> Any:
    rows = place.all_rows(WIDTH) * 2
    return np.stack([rows[(np.arange(READS) + first) % COUNT] for first in range(THREADS)])


@clause(
    "silences.threads.index",
    claim="pmap-silence.threads",
    needs=devices(COUNT),
    left_out="errors.indexing tests indexing in several processes",
    expect=everywhere(twice(returns(read))),
)
def indexed(impl: Implementation, cluster: Cluster) -> None:
    """Ten threads index one output, each row by row."""
    output = impl.map(double())(cluster.rows(WIDTH))

    def reading() -> Any:
        rows: dict[int, Any] = {}
        failed: list[Exception] = []

        def one(first: int) -> None:
            try:
                rows[first] = [np.asarray(output[(k + first) % COUNT]) for k in range(READS)]
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=one, args=(first,)) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return np.stack([rows[first] for first in range(THREADS)])

    cluster.twice(reading)


LARGE = 100_000  # numbers of a row, whose copy takes long enough for reads to meet
MANY = 64  # threads
ROUNDS = 20  # of so many threads: a meeting is a matter of chance
COPIES = 100  # of a row, by the thread that watches the others


@described("the first and the last number of each row")
def ends(place: Place) -> Any:
    return place.all_rows(LARGE)[:, [0, -1]] * 2


@described("the first and the last number of the two rows that each thread read")
def ends_of_each(place: Place) -> Any:
    first = np.arange(MANY)
    return ends(place)[np.stack([first, first + 1], 1) % COUNT]


@clause(
    "silences.threads.index-large",
    claim="pmap-silence.threads",
    needs=devices(COUNT),
    fresh=True,
    left_out="errors.indexing tests indexing in several processes",
    expect=everywhere(steps(one_thread=returns(ends), threads=returns(ends_of_each))),
)
def indexed_large(impl: Implementation, cluster: Cluster) -> None:
    """One thread reads all rows of a large output, then 64 threads read two rows each at once."""
    output = impl.map(double())(cluster.rows(LARGE))
    host = cluster.rows(LARGE)

    def row(k: int) -> Any:
        return np.asarray(output[k % COUNT])[[0, -1]]

    def reading() -> Any:
        found: dict[int, Any] = {}
        failed: list[Exception] = []

        def one(first: int) -> None:
            try:
                found[first] = np.stack([row(first), row(first + 1)])
            except Exception as error:
                failed.append(error)

        for _ in range(ROUNDS):
            run_all(
                [functools.partial(one, first) for first in range(MANY)],
                lambda: [host[k % COUNT].copy() for k in range(COPIES)],
            )
        if failed:
            raise failed[0]
        return np.stack([found[first] for first in range(MANY)])

    cluster.step("one thread", lambda: np.stack([row(k) for k in range(COUNT)]))
    cluster.step("threads", reading)


FIRST, SECOND, BEFORE = "first thread", "second thread", "call before"

CALLING = Defaults(
    claim="pmap-silence.threads",
    needs=devices(2),
    left_out="one process decides this alone; multi_controller tests several",
)


def called_by_two(impl: Implementation, cluster: Cluster, *, before: bool) -> None:
    """Call one mapped function in this thread and in a second one, at the same time.

    The first tracing waits until the second thread's call has ended or waits for it, so that the
    two meet however busy the machine is. With `before`, a call precedes both.
    """
    rows = impl.given(cluster.rows(WIDTH))
    traced = itertools.count()
    calls: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(threading.get_native_id).result()

        def body(x: Any) -> Any:
            if next(traced) == 0 and not before:
                calls.append(pool.submit(mapped, rows))
                wait_until_blocked(thread, calls[0].done, np.asarray(rows).copy)
            return x * 2

        mapped = impl.map(body)
        if before:
            cluster.step(BEFORE, mapped, rows)
            calls.append(pool.submit(mapped, rows))
        cluster.step(FIRST, mapped, rows)
        cluster.step(SECOND, calls[0].result)


@CALLING.clause(
    "silences.threads.first-call",
    title="Two threads call a mapped function at the same time, for the first time.",
    expect=everywhere(in_steps(returns(doubled), FIRST, SECOND)),
)
def first_call(impl: Implementation, cluster: Cluster) -> None:
    """Two threads call one mapped function while the first of the calls traces it."""
    called_by_two(impl, cluster, before=False)


@CALLING.clause(
    "silences.threads.called-before",
    title="Two threads call a mapped function that was called before the threads started.",
    fixes="silences.threads.first-call",
    expect=everywhere(in_steps(returns(doubled), BEFORE, FIRST, SECOND)),
)
def called_before(impl: Implementation, cluster: Cluster) -> None:
    """A call precedes the two threads, so that neither of them traces."""
    called_by_two(impl, cluster, before=True)
