"""When versions of JAX were released, from a table beside this module; results do not say it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

from conformance.model.tables import load_toml


@cache
def released() -> Mapping[str, date]:
    """The day of each version that the table has."""
    dates: Mapping[str, date] = load_toml(Path(__file__).with_name("releases.toml"))["jax"]
    return dates
