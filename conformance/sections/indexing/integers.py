"""`x[0]` and every other integer index into a stack with one row per device.

The document says what it costs now (all of the array, to every device) and why it was cheap before
(legacy's fast path); each form of an integer index is held against both.
"""

from __future__ import annotations

from typing import Any

from conformance.catalogue.clause import ONE_AND_FOUR, clause
from conformance.catalogue.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import Expectation, every, not_applicable, returns, steps
from conformance.probing.racing import SHOWN, start_of
from conformance.sections.indexing import (
    COMMUNICATES,
    INTEGERS,
    MOVES_WHOLE,
    NO_COLLECTIVE,
    ONE_DEVICE,
    REPLICATED,
    STAYS,
    access,
    stack,
)

COMMUNICATION = "migrate-pmap.int-index-communicates"
WHOLE = "migrate-pmap.int-index-moves-whole-array"
WHOLE_OF_ALL_HOSTS = "migrate-pmap.multi-host-index-gathers"
FAST_PATH = "migrate-pmap.legacy-index-single-device"
REPLICATES = "migrate-pmap.new-index-fully-replicated"
OF_NAMED_SHARDING = not_applicable("the statement is about arrays with a NamedSharding")
OF_PMAP_SHARDING = not_applicable("the statement is about arrays with a PmapSharding")

SEVERAL = ("2x2", "4x2")
AMONG_PROCESSES = ("zero", "last", "jit-zero", "jit-traced")
EAGER = [name for name, form in INTEGERS.items() if not form.jitted]
LARGE = 2**18  # float32 elements of a row: 1 MiB on each device


def index(impl: Any, cluster: Any, form: str) -> None:
    """An integer index into a map's output."""
    access(cluster, "access", INTEGERS[form], stack(impl, cluster))


def index_large(impl: Any, cluster: Any) -> None:
    """`x[0]` of 1 MiB per device, of which the first elements are shown."""
    seen = access(cluster, "access", INTEGERS["zero"], stack(impl, cluster, row=(LARGE,)))
    if seen is not None:
        cluster.step("first elements", start_of, seen.result)


def values(form: str, implementation: str) -> Expectation:
    """The rows that NumPy picks."""

    def model(place: Place) -> Any:
        return INTEGERS[form].held(place, implementation)

    return returns(model, text=f"what NumPy gives for {INTEGERS[form].text}")


def first_elements(place: Place) -> Any:
    """the first elements of the first row"""
    return place.all_rows(LARGE)[0, :SHOWN] * 2


def _row(name: str) -> None:
    """The clauses of one form."""
    text = INTEGERS[name].text
    right = {one: values(name, one) for one in IMPLEMENTATIONS}
    clause(
        f"indexing.integer.{name}",
        claim=COMMUNICATION,
        topologies=ONE_AND_FOUR,
        parameters={"form": name},
        title=f"{text} communicates.",
        expect={
            LEGACY_PMAP: every(NO_COLLECTIVE, right[LEGACY_PMAP]),
            NEW_PMAP: every(COMMUNICATES, right[NEW_PMAP]),
            SHARD_MAP: every(COMMUNICATES, right[SHARD_MAP]),
        },
    )(index)
    for part, claim, where, holds, forms in (
        ("replicated", REPLICATES, ONE_AND_FOUR, REPLICATED, INTEGERS),
        ("whole", WHOLE, ("1x8",), MOVES_WHOLE, INTEGERS),
        ("whole-of-all-processes", WHOLE_OF_ALL_HOSTS, SEVERAL, MOVES_WHOLE, AMONG_PROCESSES),
    ):
        if name in forms:
            clause(
                f"indexing.{part}.{name}",
                claim=claim,
                topologies=where,
                parameters={"form": name},
                title=f"{text}: {holds.text}.",
                expect={
                    LEGACY_PMAP: OF_NAMED_SHARDING,
                    NEW_PMAP: every(holds, right[NEW_PMAP]),
                    SHARD_MAP: every(holds, right[SHARD_MAP]),
                },
            )(index)
    if name in EAGER:
        clause(
            f"indexing.legacy.{name}",
            claim=FAST_PATH,
            topologies=ONE_AND_FOUR,
            parameters={"form": name},
            title=f"{text} takes legacy's fast path to a single device.",
            expect={
                LEGACY_PMAP: every(STAYS, ONE_DEVICE, right[LEGACY_PMAP]),
                NEW_PMAP: OF_PMAP_SHARDING,
                SHARD_MAP: OF_PMAP_SHARDING,
            },
        )(index)


for _name in INTEGERS:
    _row(_name)


clause(
    "indexing.whole.large",
    claim=WHOLE,
    title="`x[0]` of 1 MiB per device moves the whole array to every device.",
    expect={
        LEGACY_PMAP: OF_NAMED_SHARDING,
        NEW_PMAP: steps(access=MOVES_WHOLE, first_elements=returns(first_elements)),
        SHARD_MAP: steps(access=MOVES_WHOLE, first_elements=returns(first_elements)),
    },
)(index_large)
