"""What a reader uses: jax.pmap by default, with the legacy switch, or shard_map.

The implementation depends on the version: JAX 0.8.0 made new pmap the default, which the clause
`switches.default` tests in every version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reports.analysis.effects.pairs import Effects, sides
from reports.render.site.page import Asset, template_text
from reports.render.site.pairs import Pair
from reports.render.site.strips import jax_versions
from reports.store.order import LEGACY, NEW, SHARD_MAP, default_implementation
from reports.store.results import Results

SCRIPT = "site.js"
OPTIONAL = "optional"  # runs if jax_pmap_shmap_merge selects it


class Use(StrEnum):
    """What a program calls; the value is part of addresses."""

    PMAP = "pmap"
    LEGACY = "legacy"
    SHARD_MAP = "shard_map"

    @property
    def words(self) -> str:
        """The use as a reader says it; code is between backticks."""
        return _WORDS[self]

    def implementation(self, jax: str) -> str:
        """Return what runs in a version."""
        if self is Use.SHARD_MAP:
            return SHARD_MAP
        return LEGACY if self is Use.LEGACY else default_implementation(jax)


_WORDS = {
    Use.PMAP: "`jax.pmap` (default)",
    Use.LEGACY: "`jax.pmap` with `jax_pmap_shmap_merge=False`",
    Use.SHARD_MAP: "`jax.shard_map`",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One version of the timeline: what each pmap is in it."""

    jax: str
    legacy: str
    new: str


def timeline(results: Results) -> tuple[Moment, ...]:
    """Return what legacy and new pmap are in each version: default, by a switch, or removed."""
    ran = {(one.implementation, one.jax) for one in sides(results)}
    return tuple(
        Moment(jax, _state(LEGACY, jax, ran), _state(NEW, jax, ran))
        for jax in jax_versions(results)
    )


def defaults(results: Results) -> str:
    """Return since when jax.pmap is new pmap, in a sentence; empty if no version has both."""
    moments = timeline(results)
    since = next((one.jax for one in moments if one.new in ("default", "only")), "")
    optional = [one.jax for one in moments if one.legacy == OPTIONAL]
    if not since or not optional:
        return ""
    return (
        f"`jax.pmap` is new pmap by default from JAX {since} on; legacy pmap runs up to JAX "
        f"{optional[-1]} if the option `jax_pmap_shmap_merge` selects it."
    )


def _state(implementation: str, jax: str, ran: set[tuple[str, str]]) -> str:
    if (implementation, jax) not in ran:
        return "removed" if implementation == LEGACY and (NEW, jax) in ran else "not run"
    if default_implementation(jax) != implementation:
        return OPTIONAL
    other = NEW if implementation == LEGACY else LEGACY
    return "default" if (other, jax) in ran else "only"


def choices(effects: Effects, pairs: Sequence[Pair]) -> Asset:
    """Return the script of every page, with the upgrade that each choice means."""
    return Asset(SCRIPT, lambda: template_text(SCRIPT) + _upgrades(effects.results, pairs))


def _upgrades(results: Results, pairs: Sequence[Pair]) -> str:
    there = {(str(pair.old), str(pair.new)): pair.path for pair in pairs}
    rows = []
    for use in Use:
        for old in jax_versions(results):
            for new in jax_versions(results):
                path = _path(there, use, old, new)
                if path:
                    rows.append(f'["{use.value}","{old}","{new}","{path}"]')
    body = ",\n".join(rows)
    return f"const UPGRADES = [\n{body}\n];\n"


def _path(there: dict[tuple[str, str], str], use: Use, old: str, new: str) -> str:
    """Return the page of an upgrade; if legacy pmap is gone in the new version, to new pmap."""
    before = f"{use.implementation(old)}@{old}"
    after = SHARD_MAP if use is Use.SHARD_MAP else NEW
    return there.get((before, f"{after}@{new}"), "")
