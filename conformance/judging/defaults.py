"""What is expected of every step of every clause unless its own expectation says otherwise.

A step emits no warning and no log record; its results are not weakly typed, are committed if
sharded over several devices, and are in the devices' default memory; the exception that it raises
has the base classes of its type. A finding is made only if this fails, or if an entry of
`sections/warnings.toml` makes it right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from conformance.judging.deviations import Deviation
from conformance.model.observations import DEFAULT_MEMORY, ONE_MEMORY
from conformance.spec.aspects import COMMITTED, MEMORY_KIND, WEAK_TYPE
from conformance.spec.codes import Code
from conformance.spec.emissions import Emission, emission_text, emissions
from conformance.spec.exceptions import expected_bases, public_bases
from conformance.spec.expectation import Finding, claimed, parts_about
from conformance.spec.expected import Expectation
from conformance.spec.observation import Leaf, Observation
from conformance.spec.releases import numbers

ONE_DEVICE = "SingleDeviceSharding"  # committed or not, by how it was made


def check_defaults(
    expectation: Expectation,
    jax: str,
    observations: Sequence[Observation],
    warned: Sequence[Deviation] = (),
) -> list[Finding]:
    """Return the findings about defaults; `warned` are the entries about warnings."""
    return [
        *_unexpected_emissions(expectation, jax, observations, warned),
        *_unexpected_placements(expectation, jax, observations),
        *_unexpected_bases(observations),
    ]


def silent_entries(
    warned: Sequence[Deviation], observations: Sequence[Observation]
) -> list[Deviation]:
    """Return the entries about warnings that did not occur."""
    every = [one for _, _, one in emissions(observations)]
    return [
        entry
        for entry in warned
        if not entry.optional and not any(_emits(entry, one) for one in every)
    ]


def _emits(entry: Deviation, emission: Emission) -> bool:
    return entry.warns is not None and entry.warns.agrees(emission)


def _unexpected_emissions(
    expectation: Expectation,
    jax: str,
    observations: Sequence[Observation],
    warned: Sequence[Deviation],
) -> Iterator[Finding]:
    for seen, step, one in emissions(observations):
        named = (p for part in parts_about(expectation, step.name, jax) for p in part.emits)
        if any(pattern.agrees(one) for pattern in named):
            continue
        entry = next((entry for entry in warned if _emits(entry, one)), None)
        expected = "no warning and no log record" if entry is None else f"as {entry.where} says"
        yield Finding(
            step.name, seen.process, entry is not None, expected, emission_text(one), Code.WARNING
        )


def _unexpected_placements(
    expectation: Expectation, jax: str, observations: Sequence[Observation]
) -> Iterator[Finding]:
    for seen in observations:
        for step in seen.steps:
            found = [problem for leaf in step.leaves for problem in _problems(leaf, seen.jax)]
            if not found:
                continue
            claims = claimed(expectation, step.name, jax)
            for aspect, expected, saw, code in found:
                if aspect not in claims:
                    yield Finding(step.name, seen.process, False, expected, saw, code)


def _problems(leaf: Leaf, jax: str) -> Iterator[tuple[str, str, str, Code]]:
    """Yield the aspects of a leaf that differ from the defaults: aspect, expected, seen, code."""
    if leaf.weak_type:
        yield WEAK_TYPE, "no weak type", f"a weak {leaf.dtype}: {leaf}", Code.WEAK_TYPE
    if leaf.sharding is None:
        return
    if leaf.committed is False and leaf.sharding["type"] != ONE_DEVICE:
        saw = f"not committed, with a {leaf.sharding['type']}: {leaf}"
        yield COMMITTED, "committed to its devices", saw, Code.SHARDING
    kind = leaf.sharding.get("memory_kind")
    if kind not in (None, DEFAULT_MEMORY) and not (
        kind == ONE_MEMORY and numbers(jax) < numbers("0.7.1")
    ):
        saw = f"in the memory {kind}: {leaf}"
        yield MEMORY_KIND, f"in the memory {DEFAULT_MEMORY}", saw, Code.MEMORY_KIND


def _unexpected_bases(observations: Sequence[Observation]) -> Iterator[Finding]:
    """Yield a finding for each exception that `except` catches otherwise than its type's name says.

    The expectation and the entries judge the type by its name alone.
    """
    for seen in observations:
        for step in seen.steps:
            if step.raised is None:
                continue
            wanted, found = expected_bases(step.raised.type), public_bases(step.raised.bases)
            if wanted not in (None, found):
                expected = f"{step.raised.type}, a subclass of {_listed(wanted or ())}"
                saw = f"{step.raised.type}, a subclass of {_listed(found)}"
                yield Finding(step.name, seen.process, False, expected, saw, Code.BASES)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
