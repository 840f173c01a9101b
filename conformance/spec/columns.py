"""Expectations for the three implementations together, in their few combinations."""

from __future__ import annotations

from conformance.spec.expectation import not_applicable
from conformance.spec.expected import Expectation
from conformance.spec.names import IMPLEMENTATIONS, JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP

Columns = dict[str, Expectation]


def everywhere(expected: Expectation) -> Columns:
    """Expect the same of every implementation."""
    return dict.fromkeys(IMPLEMENTATIONS, expected)


def of_jax(expected: Expectation) -> Columns:
    """Expect it of JAX itself, once: the probe maps nothing, so no implementation is proved."""
    return {JAX: expected}


def of_pmaps(expected: Expectation, otherwise: str) -> Columns:
    """Expect the same of both pmaps; `otherwise` says why shard_map is not tested."""
    return {LEGACY_PMAP: expected, NEW_PMAP: expected, SHARD_MAP: not_applicable(otherwise)}


def of_shard_map(expected: Expectation, otherwise: str) -> Columns:
    """Expect it of shard_map only; `otherwise` says why the pmaps are not tested."""
    why = not_applicable(otherwise)
    return {LEGACY_PMAP: why, NEW_PMAP: why, SHARD_MAP: expected}


def of_new_pmap(expected: Expectation, otherwise: str) -> Columns:
    """Expect it of new pmap only; `otherwise` says why the others are not tested."""
    why = not_applicable(otherwise)
    return {LEGACY_PMAP: why, NEW_PMAP: expected, SHARD_MAP: why}


def unless_legacy(legacy: Expectation, others: Expectation) -> Columns:
    """Expect a change: `legacy` of legacy pmap, `others` of new pmap and shard_map."""
    return {LEGACY_PMAP: legacy, NEW_PMAP: others, SHARD_MAP: others}
