"""Every other way to read an output: slices, fancy indices, iteration, the host's own.

The document speaks of integer indices only. Here legacy decides what leaves the devices, and the
size of the result how much there is to move between them.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from conformance.sections.indexing import (
    BOUNCES,
    STAYS,
    Form,
    access,
    accessed,
    moves_at_most_its_result,
    output,
)
from conformance.sections.indexing.forms import FORMS
from conformance.spec.clause import devices
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation

FETCH = "fetch"  # the sort whose purpose is to fetch to the host
FEW_ROWS = "with four processes, each has only two rows"
IN_ONE_PROCESS: Mapping[str, Form] = table(
    Form("pair", "`x[:2]`", lambda x: x[:2], bounces=True, sort="slice"),
    Form("asarray", "`np.asarray(x)[0]`", lambda x: np.asarray(x)[0], bounces=True, sort=FETCH),
    Form(
        "device-get",
        "`jax.device_get(x)[0]`",
        lambda x: jax.device_get(x)[0],
        lambda x: x[0],
        bounces=True,
        sort=FETCH,
    ),
)


def moderate(form: Form) -> Expectation:
    """No more between devices than the result has, and off them only where legacy is."""
    if form.sort == FETCH:  # the control: where this did not show, no other access would
        return BOUNCES
    return moves_at_most_its_result(form.bounces)


@family(
    "indexing.access.{form}",
    form={**FORMS, **IN_ONE_PROCESS},
    claim="pmap-silence.access-cost",
    title="{form.text} communicates no more than its result needs.",
    fact=lambda form: f"indexing.access.{form.sort}",
    topologies=lambda form: ONE_PROCESS if form.key in IN_ONE_PROCESS else ONE_AND_FOUR,
    left_out=lambda form: FEW_ROWS if form.key in IN_ONE_PROCESS else "",
    needs=devices(2),
    expect={
        LEGACY_PMAP: lambda form: accessed(
            BOUNCES if form.bounces else STAYS, form.right(LEGACY_PMAP)
        ),
        NEW_PMAP: lambda form: accessed(moderate(form), form.right(NEW_PMAP)),
        SHARD_MAP: lambda form: accessed(moderate(form), form.right(SHARD_MAP)),
    },
)
def read(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """A map's output, read in one of the forms."""
    access(cluster, "access", form, output(impl, cluster))
