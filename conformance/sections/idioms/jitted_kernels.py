"""Bodies at the size of real data without a mapped function: a vmap in a plain jit."""

from __future__ import annotations

from typing import Any

import jax

from conformance.sections.idioms.kernel_bodies import (
    CALLS,
    DEADLINE_S,
    KERNELS,
    Kernel,
    data,
    right,
)
from conformance.sections.idioms.sharded import sharded, split
from conformance.sections.idioms.sized import ends_and_sum
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.family import family
from conformance.spec.topology import ONE_AND_TWO
from conformance.worker.compiling import compiled_as_by_default
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.recording import local_rows


@family(
    "idioms.jit-at-size.{kernel}",
    kernel=KERNELS,
    claim="pmap-silence.jit-with-shardings",
    title="{kernel.text}, in a vmap under a plain jit: right values at realistic sizes.",
    needs=devices(2),
    topologies=ONE_AND_TWO,
    deadline_s=DEADLINE_S,
    expect=lambda kernel: of_jax(right(kernel)),
)
def compute(impl: Implementation, cluster: Cluster, kernel: Kernel) -> None:
    """A jit of the vmapped body is called twice; ends and sums are compared."""
    step = jax.jit(jax.vmap(kernel.body), out_shardings=split(impl))
    args = [sharded(impl, cluster.mine(one)) for one in data(cluster, kernel)]

    def call() -> Any:
        return ends_and_sum(local_rows(step(*args)))

    with compiled_as_by_default():
        for name in CALLS:
            cluster.step(name, call)
