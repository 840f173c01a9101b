"""Ten threads that read one output at the same time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from conformance.catalogue.clause import clause, devices
from conformance.catalogue.topology import Place
from conformance.judging.columns import everywhere
from conformance.judging.expectation import returns, twice
from conformance.probing.bodies import double
from conformance.probing.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row
THREADS = 10
READS = 16  # of each thread


def read(place: Place) -> Any:
    """what each thread read: the rows in turn, each from a row further on"""
    rows = place.all_rows(WIDTH) * 2
    return np.stack([rows[(np.arange(READS) + first) % COUNT] for first in range(THREADS)])


@clause(
    "silences.threads.index",
    claim="pmap-silence.threads",
    needs=devices(COUNT),
    left_out="in several processes an output is indexed in errors.indexing",
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
