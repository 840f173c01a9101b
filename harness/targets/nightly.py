"""JAX's nightly wheels: their versions, their index, and the options by which uv uses it.

They are on an index of JAX's own, never on the package index; other requirements may be on either,
so that index is asked first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

INDEX = "https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/"
INDEX_VARIABLE = "PMAP_CONFORMANCE_NIGHTLY_INDEX"

# The oldest that may be chosen: named as a development version, so that those may be.
ANY = ("jax>=0.7.0.dev0", "jaxlib>=0.7.0.dev0")

FAR_OFF = 99991231  # a night after all others


def is_nightly(version: str) -> bool:
    """Return whether a version is one of JAX's nightly wheels, such as 0.12.1.dev20261122."""
    return re.search(r"\.dev\d+$", version) is not None


def index(environ: Mapping[str, str] = os.environ) -> str:
    """Return the index of nightly wheels: JAX's own, or a mirror that the user names."""
    return environ.get(INDEX_VARIABLE) or INDEX


def options() -> list[str]:
    """Return uv's options for nightly wheels; their requirements may be nightly wheels too."""
    return ["--index", index(), "--prerelease", "allow"]
