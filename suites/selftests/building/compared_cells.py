"""Cells of two implementations, and an entry that explains a difference between them."""

from __future__ import annotations

from typing import Any

from records import Record, cell, claim, clause, observation, sample_step, target

SAME = {"legacy_pmap": "returns the rows", "new_pmap": "returns the rows"}
HEAD = [
    target(),
    claim("migrate-pmap.errors"),
    claim("migrate-pmap.fixed"),
    clause("errors.a", expected=SAME),
    clause("errors.b", expected=SAME),
]


def array(**other: Any) -> Record:
    """A step that returned an array which differs from the sample's in `other`."""
    step = sample_step(warnings=[], logs=[], extra={})
    step["value"]["leaves"][0] |= other
    return step


def spread(**other: Any) -> Record:
    """The sample's sharding, but for `other`."""
    return array(sharding=array()["value"]["leaves"][0]["sharding"] | other)


def run(implementation: str, *steps: Record, id: str = "errors.a", **other: Any) -> Record:
    """A cell of one process that did these steps."""
    seen = [observation(*steps)]
    return cell(id, implementation=implementation, topology="1x8", observations=seen) | other


OTHER = array(dtype="int32")
ENTRY = 'field = "dtype"\nold = "a"\nnew = "b"\nsays = "c"\nreview = 2027-03-01\n'
