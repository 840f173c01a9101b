"""shard_map's `check_vma`, on and off: parts that the modules about bodies share.

pmap's bodies do not distinguish values that are equal on all devices from values that vary.
shard_map types them by default, so each body is tested both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from conformance.spec.columns import Columns, of_shard_map
from conformance.spec.family import table
from conformance.spec.names import SHARD_MAP

OPTION = "check_vma is an option of shard_map"


@dataclass(frozen=True, slots=True)
class Check:
    """The setting of shard_map's `check_vma`."""

    key: str
    text: str
    on: bool


CHECKED = Check("checked", "", True)
UNCHECKED = Check("unchecked", ", under check_vma=False", False)
CHECKS: Mapping[str, Check] = table(CHECKED, UNCHECKED)


def asked(columns: Columns, check: Check) -> Columns:
    """Return the columns: all with the check; without it only shard_map's, which has the option."""
    return columns if check.on else of_shard_map(columns[SHARD_MAP], OPTION)


def varying(x: Any) -> Any:
    """A value that is equal on all devices, typed as one that varies: JAX's own remedy."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, "i", to="varying")
    return jax.lax.pvary(x, "i")
