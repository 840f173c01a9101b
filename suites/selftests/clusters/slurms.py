"""A Slurm of two nodes on this machine, and an allocation of both."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from proof import needs

from conformance.worker.slurm import slurm

NODES = ("n0", "n1")
GRANTED_S = 60.0


@contextmanager
def two_nodes() -> Iterator[Mapping[str, str]]:
    """The variables by which Slurm's commands find it; skips where it is not installed."""
    needs("munged", "slurmctld", "slurmd", "srun", "salloc")
    with slurm(NODES) as variables:
        yield variables


def allocation() -> Mapping[str, str]:
    """Return the environment variables of a command under `salloc`; the allocation lasts as long as
    its Slurm.
    """
    asked = ["salloc", f"--nodes={len(NODES)}", "--exclusive", "--no-shell"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=GRANTED_S, check=True)
    granted = re.search(r"Granted job allocation (\d+)", done.stderr)
    assert granted is not None, done.stderr
    return {"SLURM_JOB_ID": granted[1], "SLURM_JOB_NODELIST": ",".join(NODES)}
