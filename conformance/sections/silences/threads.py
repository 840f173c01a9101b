"""Threads that read one output at the same time: ten of small rows, 64 of large ones."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere
from conformance.spec.expectation import returns, steps, twice
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double
from conformance.worker.deadlocks import run_all
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
