"""How an agent describes its host when it connects: its identity, devices and software.

Nothing here asks JAX, because an initialised backend holds the devices that the workers need.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("conformance", "harness/clusters")  # what a worker may run of this project

# By which a job tells a process its number, the innermost first: mpirun may run inside Slurm's job.
RANK_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "JOB_COMPLETION_INDEX",
    "TPU_WORKER_ID",
)
MOST_DIGITS = 9  # of a rank
NAME_VARIABLE = "SLURMD_NODENAME"  # a scheduler's name for a host may be another than its own

CPU, CUDA, TPU = "cpu", "cuda", "tpu"
# By which JAX computes on a platform's devices, any of them.
PACKAGES = {CUDA: ("jax-cuda12-plugin", "jax-cuda13-plugin"), TPU: ("libtpu",)}
CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"
TPU_VISIBLE = "TPU_VISIBLE_CHIPS"

# What would decide what a probe observes, or where JAX believes that it runs: a worker is told by
# its controller alone.
TOLD = (
    *("JAX_", "XLA_", "TF_", "PYTEST_", "CONFORMANCE_"),
    *("OMPI_", "PMIX_", "PRTE_", "SLURM_", "KUBERNETES_", "JOB_COMPLETION_INDEX"),
)
# The TPU runtime reads its own place in the pod from these.
TOLD_TO_TPUS = ("TPU_", "CLOUD_TPU_", "MEGASCALE_")


def described(address: str, rank: int | None, name: str = "") -> dict[str, Any]:
    """Describe this host, with its `address` in the shared network and its `rank` in the job, if
    any.
    """
    found = {kind: devices(kind, os.environ) for kind in PACKAGES}
    return {
        "host": name or socket.gethostname(),
        "address": address,
        "rank": rank,
        "python": platform.python_version(),
        "jax": _version("jax"),
        "jaxlib": _version("jaxlib"),
        "machine": platform.machine(),
        "platform": platform_of(found),
        "devices": {kind: list(ids) for kind, ids in found.items() if ids},
        "sources": sources(),
    }


def rank_in_job(environment: Mapping[str, str]) -> int | None:
    """Return the rank that the job's launcher gave this process; None if there is none."""
    for name in RANK_VARIABLES:
        value = environment.get(name, "")
        if value.isdecimal() and len(value) <= MOST_DIGITS:
            return int(value)
    return None


def devices(
    platform: str, environment: Mapping[str, str], root: Path = Path("/")
) -> tuple[str, ...]:
    """Return the ids of this machine's devices of a platform, limited to those that the user made
    visible.
    """
    if platform == CUDA:
        every = [str(n) for n, _ in enumerate(_entries(root / "proc/driver/nvidia/gpus"))]
        return _visible(every, environment.get(CUDA_VISIBLE))
    if platform == TPU:
        accelerators = [p for p in _entries(root / "dev") if re.fullmatch(r"accel\d+", p.name)]
        # From v5e on a chip is a group of the kernel's vfio; `vfio` beside them is their container.
        found = accelerators or [p for p in _entries(root / "dev/vfio") if p.name.isdigit()]
        return _visible([str(n) for n, _ in enumerate(found)], environment.get(TPU_VISIBLE))
    return ()


def platform_of(
    found: Mapping[str, Sequence[str]], has: Callable[[str], bool] | None = None
) -> str:
    """Return the platform that JAX uses here: one with devices and with JAX's package for it."""
    has = has or (lambda package: _version(package) is not None)
    for kind, packages in PACKAGES.items():
        if found.get(kind) and any(map(has, packages)):
            return kind
    return CPU


def _visible(every: Sequence[str], said: str | None) -> tuple[str, ...]:
    """Return the devices that the user's variable selects, in its order; unknown ids are kept."""
    if said is None:
        return tuple(every)
    named = [one.strip() for one in said.split(",") if one.strip()]
    # As CUDA does: what follows the first that is not there is not seen.
    seen = []
    for one in named:
        if one.lstrip("-").isdigit() and one not in every:
            break
        seen.append(one)
    return tuple(seen) if every else ()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def sources(root: Path = ROOT) -> str:
    """Return a hash of all project files that a worker may run; hosts must agree on it."""
    hashed = hashlib.sha256()
    files = [file for folder in SOURCES for file in (root / folder).rglob("*.py")]
    for file in sorted(files, key=lambda one: one.relative_to(root).as_posix()):
        content = file.read_bytes()
        hashed.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode())
        hashed.update(content)
    return hashed.hexdigest()[:16]


def forget_the_job(environment: MutableMapping[str, str], *, tpu: bool) -> None:
    """Remove from `environment` the variables that the controller sets itself."""
    told = TOLD if tpu else (*TOLD, *TOLD_TO_TPUS)
    for name in [name for name in environment if name.startswith(told)]:
        del environment[name]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
