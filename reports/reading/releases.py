"""When versions of JAX were released, from a table beside this module; results do not say it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib import resources


@cache
def released() -> Mapping[str, date]:
    """The day of each version that the table has."""
    text = resources.files("reports.reading").joinpath("releases.toml").read_text(encoding="utf-8")
    dates: Mapping[str, date] = tomllib.loads(text)["jax"]
    return dates
