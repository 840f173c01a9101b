"""List the cells of a tier without running them: `pmap-conformance list cells`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

from conformance.catalogue import loading
from conformance.judging import deviations
from conformance.spec import names
from conformance.spec.names import CPU
from harness.running import cells, tiers
from harness.targets.target import TargetError, parse_spec


def cells_of(tier: str, specs: Sequence[str]) -> tiers.Tier:
    """Return what a run of `tier` on these targets selects; TargetError if a spec has no version.

    Nothing is installed, so a target is named by the version of its JAX, or is this environment.
    """
    versions = dict(_versioned(text) for text in specs)
    catalogue = loading.load()
    every = [
        cell
        for section in catalogue.sections()
        for cell in cells.select(catalogue, section, names.COLUMNS, list(versions))
    ]
    core = tiers.core(every, catalogue, deviations.load_all(), versions, CPU)
    return core if tier == tiers.CORE else tiers.Tier(frozenset(every), core.of, core.of)


def _versioned(text: str) -> tuple[str, str]:
    spec = parse_spec(text)
    if spec.kind == "current":
        return str(spec), metadata.version("jax")
    if spec.kind != "version":
        raise TargetError(f"{text}: name a version, such as jax==0.9.0, or current")
    return str(spec), spec.value
