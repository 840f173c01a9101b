"""What a host's agent says of its host when it dials in: who it is, and what it has.

Nothing here asks JAX: a backend that is initialised holds its devices, which are the workers'.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
from collections.abc import Mapping, MutableMapping
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
NAME_VARIABLE = "SLURMD_NODENAME"  # a scheduler's name for a host may be another than its own

# What would decide what a probe observes, or where JAX believes that it runs: a worker is told by
# its controller alone.
TOLD = (
    *("JAX_", "XLA_", "TF_", "PYTEST_", "CONFORMANCE_"),
    *("OMPI_", "PMIX_", "PRTE_", "SLURM_", "KUBERNETES_", "JOB_COMPLETION_INDEX"),
)
# The TPU runtime reads its own place in the pod from these.
TOLD_TO_TPUS = ("TPU_", "CLOUD_TPU_", "MEGASCALE_")


def described(address: str, rank: int | None, name: str = "") -> dict[str, Any]:
    """This host, of `address` in its network and number `rank` in its job, if it has one."""
    return {
        "host": name or socket.gethostname(),
        "address": address,
        "rank": rank,
        "python": platform.python_version(),
        "jax": _version("jax"),
        "jaxlib": _version("jaxlib"),
        "machine": platform.machine(),
        "devices": devices(),
        "sources": sources(),
    }


def rank_in_job(environment: Mapping[str, str]) -> int | None:
    """The number that this job's launcher gave this process; None where none did."""
    for name in RANK_VARIABLES:
        value = environment.get(name, "")
        if value.isdecimal():
            return int(value)
    return None


def devices(root: Path = Path("/dev")) -> dict[str, int]:
    """How many of each kind there are, by the files of their drivers; of CPUs, the usable cores."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    cuda = len([p for p in root.glob("nvidia*") if p.name.removeprefix("nvidia").isdecimal()])
    tpu = [*root.glob("accel[0-9]*"), *(p for p in root.glob("vfio/*") if p.name.isdecimal())]
    counts = {
        "cpu": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        "cuda": cuda if visible is None else len([one for one in visible.split(",") if one]),
        "tpu": len(tpu),
    }
    return {kind: count for kind, count in counts.items() if count}


def sources(root: Path = ROOT) -> str:
    """A hash of all that a worker may run of this project, the same on hosts that agree."""
    hashed = hashlib.sha256()
    files = [file for folder in SOURCES for file in (root / folder).rglob("*.py")]
    for file in sorted(files, key=lambda one: one.relative_to(root).as_posix()):
        content = file.read_bytes()
        hashed.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode())
        hashed.update(content)
    return hashed.hexdigest()[:16]


def forget_the_job(environment: MutableMapping[str, str], *, tpu: bool) -> None:
    """Take out of `environment` what is the controller's to say."""
    told = TOLD if tpu else (*TOLD, *TOLD_TO_TPUS)
    for name in [name for name in environment if name.startswith(told)]:
        del environment[name]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
