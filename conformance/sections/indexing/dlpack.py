"""An output's row, handed to another library by DLPack, as `torch.from_dlpack` takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.sections.indexing import first_row, output
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import returns, twice
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation

DEFAULTS = Defaults(
    claim="pmap-silence.committed-outputs",
    needs=devices(2),
    topologies=ONE_PROCESS,
    left_out="a row is handed over within a process",
    expect=everywhere(twice(returns(first_row))),
)


def handed_over(cluster: Cluster, row: Any) -> None:
    """Hand a row to NumPy, twice."""
    cluster.twice(lambda: np.array(np.from_dlpack(row)))


@DEFAULTS.clause("indexing.dlpack.row")
def by_index(impl: Implementation, cluster: Cluster) -> None:
    """`np.from_dlpack(out[0])` reads the first row of an output."""
    handed_over(cluster, output(impl, cluster)[0])


@DEFAULTS.clause("indexing.dlpack.shard", fixes="indexing.dlpack.row")
def of_a_shard(impl: Implementation, cluster: Cluster) -> None:
    """`np.from_dlpack` of the data of an output's first shard reads the first row."""
    handed_over(cluster, output(impl, cluster).addressable_shards[0].data.squeeze(0))
