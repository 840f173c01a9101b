"""`x[0]` and all other integer indices into a stack with one row per device.

The document describes the cost now (the whole array to every device) and the reason for the low
cost before (legacy pmap's fast path); each form of an integer index is tested for both.
"""

from __future__ import annotations

from typing import Any

from conformance.sections.indexing import (
    COMMUNICATES,
    INTEGERS,
    MOVES_WHOLE,
    NO_COLLECTIVE,
    ONE_DEVICE,
    REPLICATES,
    STAYS,
    Form,
    access,
    accessed,
    output,
    replicated,
)
from conformance.spec.clause import devices
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import not_applicable, returns, steps
from conformance.spec.family import family
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_PROCESS, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation
from conformance.worker.racing import SHOWN, start_of

WHOLE = "migrate-pmap.int-index-moves-whole-array"
OF_ALL = "indexing.whole-of-all-processes tests several processes"
OF_NAMED_SHARDING = not_applicable("the statement is about arrays with a NamedSharding")
OF_PMAP_SHARDING = not_applicable("the statement is about arrays with a PmapSharding")

LARGE = 2**18  # float32 elements of a row: 1 MiB on each device

DEFAULTS = Defaults(fact="indexing.leading.cost", cause="index-replicates-the-row")


@DEFAULTS.family(
    "indexing.integer.{form}",
    form=INTEGERS,
    claim="migrate-pmap.int-index-communicates",
    title=(
        "{form.text} communicates at most the whole array; under legacy pmap it does not "
        "communicate."
    ),
    fact=lambda form: "indexing.integer.jitted" if form.jitted else "indexing.integer",
    topologies=ONE_AND_FOUR,
    needs=devices(2),
    expect={
        LEGACY_PMAP: lambda form: accessed(NO_COLLECTIVE, form.right(LEGACY_PMAP)),
        NEW_PMAP: lambda form: accessed(COMMUNICATES, form.right(NEW_PMAP)),
        SHARD_MAP: lambda form: accessed(COMMUNICATES, form.right(SHARD_MAP)),
    },
)
@DEFAULTS.family(
    "indexing.replicated.{form}",
    form=INTEGERS,
    claim="migrate-pmap.new-index-fully-replicated",
    title=f"{{form.text}}: {REPLICATES}.",
    fact="indexing.leading.result",
    topologies=ONE_AND_FOUR,
    needs=devices(2),
    expect={
        LEGACY_PMAP: OF_NAMED_SHARDING,
        NEW_PMAP: lambda form: accessed(replicated(NEW_PMAP), form.right(NEW_PMAP)),
        SHARD_MAP: lambda form: accessed(replicated(SHARD_MAP), form.right(SHARD_MAP)),
    },
)
@DEFAULTS.family(
    "indexing.whole.{form}",
    form=INTEGERS,
    claim=WHOLE,
    title=f"{{form.text}}: {MOVES_WHOLE.text}.",
    topologies=ONE_PROCESS,
    left_out=OF_ALL,
    needs=devices(2),
    expect={
        LEGACY_PMAP: OF_NAMED_SHARDING,
        NEW_PMAP: lambda form: accessed(MOVES_WHOLE, form.right(NEW_PMAP)),
        SHARD_MAP: lambda form: accessed(MOVES_WHOLE, form.right(SHARD_MAP)),
    },
)
@DEFAULTS.family(
    "indexing.whole-of-all-processes.{form}",
    form={key: INTEGERS[key] for key in ("zero", "last", "jit-zero", "jit-traced")},
    claim="migrate-pmap.multi-host-index-gathers",
    title=f"{{form.text}}: {MOVES_WHOLE.text}.",
    topologies=SEVERAL_PROCESSES,
    needs=devices(2),
    expect={
        LEGACY_PMAP: OF_NAMED_SHARDING,
        NEW_PMAP: lambda form: accessed(MOVES_WHOLE, form.right(NEW_PMAP)),
        SHARD_MAP: lambda form: accessed(MOVES_WHOLE, form.right(SHARD_MAP)),
    },
)
@family(
    "indexing.legacy.{form}",
    form={key: form for key, form in INTEGERS.items() if not form.jitted},
    claim="migrate-pmap.legacy-index-single-device",
    title="{form.text} takes legacy pmap's fast path to a single device.",
    fact="indexing.legacy",
    topologies=ONE_AND_FOUR,
    needs=devices(2),
    expect={
        LEGACY_PMAP: lambda form: accessed(STAYS, ONE_DEVICE, form.right(LEGACY_PMAP)),
        NEW_PMAP: OF_PMAP_SHARDING,
        SHARD_MAP: OF_PMAP_SHARDING,
    },
)
def index(impl: Implementation, cluster: Cluster, form: Form) -> None:
    """Index an output with an integer."""
    access(cluster, "access", form, output(impl, cluster))


@described("the first elements of the first row")
def first_elements(place: Place) -> Any:
    return place.all_rows(LARGE)[0, :SHOWN] * 2


@DEFAULTS.clause(
    "indexing.whole.large",
    claim=WHOLE,
    left_out=OF_ALL,
    needs=devices(2),
    expect={
        LEGACY_PMAP: OF_NAMED_SHARDING,
        NEW_PMAP: steps(access=MOVES_WHOLE, first_elements=returns(first_elements)),
        SHARD_MAP: steps(access=MOVES_WHOLE, first_elements=returns(first_elements)),
    },
)
def index_large(impl: Implementation, cluster: Cluster) -> None:
    """`x[0]` of 1 MiB per device all-gathers the whole array."""
    seen = access(cluster, "access", INTEGERS["zero"], output(impl, cluster, row=(LARGE,)))
    if seen is not None:
        cluster.step("first elements", start_of, seen.result)
