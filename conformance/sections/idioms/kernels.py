"""Bodies at the size of real data in a map."""

from __future__ import annotations

from typing import Any

from conformance.sections.idioms import AXIS, mapped_argument
from conformance.sections.idioms.kernel_bodies import (
    CALLS,
    DEADLINE_S,
    KERNELS,
    Kernel,
    data,
    right,
)
from conformance.sections.idioms.sized import ends_and_sum
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.family import family
from conformance.spec.topology import ONE_AND_TWO
from conformance.worker.compiling import compiled_as_by_default
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows


@family(
    "idioms.at-size.{kernel}",
    kernel=KERNELS,
    claim="pmap-silence.same-numbers-at-size",
    title="{kernel.text}: right values at realistic sizes.",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    deadline_s=DEADLINE_S,
    expect=lambda kernel: everywhere(right(kernel)),
)
def compute(impl: Implementation, cluster: Cluster, kernel: Kernel) -> None:
    """A map of the body, compiled as a user's is, is called twice; ends and sums are compared."""
    mapped = impl.map(kernel.body, AXIS)
    args = [mapped_argument(impl, cluster.mine(one)) for one in data(cluster, kernel)]

    def call() -> Any:
        return ends_and_sum(local_rows(mapped(*args)))

    with compiled_as_by_default():
        for name in CALLS:
            cluster.step(name, call)
