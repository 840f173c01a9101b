"""The releases of JAX that the published matrix is about, as tox.ini names them."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from packaging.version import Version

TOX = Path(__file__).resolve().parents[3] / "tox.ini"


def published_versions() -> tuple[str, ...]:
    """Return the versions of which all cells or the core tier are published, oldest first."""
    read = configparser.ConfigParser(interpolation=None)
    read.read(TOX)
    tiers = read["published"]
    found = re.findall(r"jax==(\S+)", f"{tiers['full']} {tiers['core']}")
    return tuple(sorted(found, key=Version))
