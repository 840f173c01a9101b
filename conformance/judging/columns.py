"""What is expected of the three implementations together: the few ways in which they differ."""

from __future__ import annotations

from conformance.catalogue.names import IMPLEMENTATIONS, JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.judging.expectation import Expectation, not_applicable

Columns = dict[str, Expectation]


def everywhere(expected: Expectation) -> Columns:
    """The same of every implementation."""
    return dict.fromkeys(IMPLEMENTATIONS, expected)


def of_jax(expected: Expectation) -> Columns:
    """Of JAX itself, once: the clause's probe maps nothing, so that no implementation is proven."""
    return {JAX: expected}


def of_pmaps(expected: Expectation, otherwise: str) -> Columns:
    """The same of both pmaps; `otherwise` is why shard_map is not asked."""
    return {LEGACY_PMAP: expected, NEW_PMAP: expected, SHARD_MAP: not_applicable(otherwise)}


def of_shard_map(expected: Expectation, otherwise: str) -> Columns:
    """Of shard_map alone; `otherwise` is why the pmaps are not asked."""
    why = not_applicable(otherwise)
    return {LEGACY_PMAP: why, NEW_PMAP: why, SHARD_MAP: expected}


def of_new_pmap(expected: Expectation, otherwise: str) -> Columns:
    """Of the new pmap alone; `otherwise` is why the others are not asked."""
    why = not_applicable(otherwise)
    return {LEGACY_PMAP: why, NEW_PMAP: expected, SHARD_MAP: why}


def unless_legacy(legacy: Expectation, others: Expectation) -> Columns:
    """What changed: `legacy` of the one, `others` of both that came after it."""
    return {LEGACY_PMAP: legacy, NEW_PMAP: others, SHARD_MAP: others}
