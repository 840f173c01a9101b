"""The order and the names in which targets, implementations and topologies are shown.

Versions are ordered by their numbers here, as a report needs no more of packaging's rules.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from conformance.model.records import JAX, Target, TargetKey

LEGACY, NEW, SHARD_MAP = "legacy_pmap", "new_pmap", "shard_map"
MAPS = (LEGACY, NEW, SHARD_MAP)

_IMPLEMENTATIONS = (*MAPS, JAX)
_SHORT = {LEGACY: "legacy", NEW: "new", SHARD_MAP: "shard"}

# A version's suffix, from its beginning to its end: 1.0.dev1 < 1.0rc1 < 1.0 < 1.0.post1.
_SUFFIXES = (("dev", -4), ("a", -3), ("b", -2), ("rc", -1), ("post", 1))

_KEPT = 1024  # versions, and topologies: there are few, and every page orders them

VersionOrder = tuple[bool, tuple[int, ...], int, tuple[int, ...], str]

_DIGITS = 18  # of a number in a version; of more, all count as one
_LARGEST = 10**_DIGITS


@lru_cache(_KEPT)
def version_order(version: str) -> VersionOrder:
    """A sort key: by numbers, before-releases first; what is not a version comes last."""
    match = re.match(r"v?(\d+(?:\.\d+)*)[._-]?(.*)", version)
    if match is None:
        return True, (), 0, (), version
    release = _numbers(match[1])
    while release and release[-1] == 0:
        release = release[:-1]
    suffix = match[2].split("+", 1)[0]
    rank = next((rank for name, rank in _SUFFIXES if suffix.startswith(name)), 0)
    return False, release, rank, _numbers(suffix), version


@lru_cache(_KEPT)
def topology_order(topology: str) -> tuple[bool, tuple[int, ...], str]:
    """A sort key: by processes, then devices; what is not a topology comes last."""
    match = re.fullmatch(r"\d+x\d+", topology)
    return match is None, _numbers(topology) if match else (), topology


def implementation_order(implementation: str) -> tuple[int, str]:
    """A sort key: oldest implementation first, unknown ones last."""
    known = implementation in _IMPLEMENTATIONS
    rank = _IMPLEMENTATIONS.index(implementation) if known else len(_IMPLEMENTATIONS)
    return rank, implementation


def short_implementation(implementation: str) -> str:
    """A column head that is no wider than a badge."""
    return _SHORT.get(implementation, implementation)


def labels(targets: Iterable[Target]) -> dict[TargetKey, str]:
    """`jax X` per target, with platform, Python or spec added only where two would read alike."""
    groups: dict[str, list[Target]] = defaultdict(list)
    for target in targets:
        groups[_base(target)].append(target)
    found: dict[TargetKey, str] = {}
    for base, group in groups.items():
        shown = {t.key: [base] for t in group}
        for texts in (
            {t.key: t.platform or "" for t in group},
            {t.key: f"Python {t.python}" if t.python else "" for t in group},
            {t.key: t.target for t in group},
        ):
            distinct = len({tuple(words) for words in shown.values()})
            if distinct < len(group) and len(set(texts.values())) > 1 and all(texts.values()):
                shown = {key: [*words, texts[key]] for key, words in shown.items()}
        for key, (first, *more) in shown.items():
            found[key] = f"{first} ({', '.join(more)})" if more else first
    return found


def spec_names(targets: Iterable[Target]) -> dict[TargetKey, str]:
    """The spec per target as its name for programs; with version and platform if used twice."""
    by_spec: Mapping[str, list[Target]] = defaultdict(list)
    for target in targets:
        by_spec[target.target].append(target)
    return {
        t.key: spec if len(group) == 1 else f"{spec} (jax {t.jax or '?'}, {t.platform or '?'})"
        for spec, group in by_spec.items()
        for t in group
    }


def _base(target: Target) -> str:
    if target.jax:
        return f"jax {target.jax}"
    return re.sub(r"^jax==", "jax ", target.target)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.findall(r"\d+", text)
    return tuple(int(one) if len(one) <= _DIGITS else _LARGEST for one in found)


# The first version in which jax.pmap is new pmap, and the first without legacy pmap, as
# `switches.default` tests in every version.
DEFAULT_SINCE, REMOVED_IN = "0.8", "0.10"
NEW_BY_DEFAULT, LEGACY_REMOVED = version_order(DEFAULT_SINCE), version_order(REMOVED_IN)


def default_implementation(jax: str) -> str:
    """Return what jax.pmap is in a version if no switch is set."""
    return LEGACY if version_order(jax) < NEW_BY_DEFAULT else NEW
