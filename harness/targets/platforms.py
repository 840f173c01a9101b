"""What a platform requires of a target's environment and of its processes.

A platform is selected by --platform and recorded with every target. Every difference between
platforms is defined here, so that no other module checks for one by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.spec.names import CPU, TPU_COMPILE

CUDA, TPU = "cuda", "tpu"

# The first driver that runs what CUDA 13 compiled; older ones run CUDA 12.
FIRST_DRIVER_OF_CUDA_13 = 580
DRIVER = "proc/driver/nvidia/version"

# Where several processes share devices none may take all of their memory at its start.
ON_DEMAND = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
# Else libtpu looks for a cloud's metadata where there is none, and serves one process at a time.
ALONE = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}


@dataclass(frozen=True, slots=True)
class Platform:
    """`name` is recorded, `backend` is JAX's name.

    `packages` are what a target needs beside jax: the extra of its own version and its
    requirements, so that a user's interpreter without them is rejected. `variables` are every
    worker's.
    """

    name: str
    backend: str
    packages: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_devices(self) -> bool:
        """Return whether its devices are limited hardware of the machine."""
        return self.name in (CUDA, TPU)


def _cuda(major: int) -> Platform:
    packages = (f"jax[cuda{major}]", f"jax-cuda{major}-plugin")
    return Platform(CUDA, "cuda", packages, ON_DEMAND)


_TPU_PACKAGES = ("jax[tpu]", "libtpu")

# As --platform takes them. `cuda` is one of the two below it, whichever the driver runs.
PLATFORMS: Mapping[str, Platform] = {
    CPU: Platform(CPU, "cpu"),
    CUDA: _cuda(12),
    "cuda12": _cuda(12),
    "cuda13": _cuda(13),
    TPU: Platform(TPU, "tpu", _TPU_PACKAGES),
    TPU_COMPILE: Platform(TPU_COMPILE, "cpu", _TPU_PACKAGES, ALONE),
}


def named(text: str, root: Path = Path("/")) -> Platform:
    """Return the platform that --platform names, on the machine whose files begin at `root`.

    ValueError names the platforms that there are.
    """
    if text not in PLATFORMS:
        raise ValueError(
            f"--platform {text}: no platform is called so; choose from {', '.join(PLATFORMS)}"
        )
    if text == CUDA and _driver(root) >= FIRST_DRIVER_OF_CUDA_13:
        return PLATFORMS["cuda13"]
    return PLATFORMS[text]


def _driver(root: Path) -> int:
    """Return the major version of NVIDIA's driver; 0 if there is none."""
    try:
        text = (root / DRIVER).read_text("utf-8", errors="replace")
    except OSError:
        return 0
    found = re.search(r"Kernel Module.*?\s(\d+)\.\d+", text)
    return int(found[1]) if found else 0
