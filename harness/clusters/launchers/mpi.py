"""The Open MPI launcher: mpirun starts one process per host, which does not itself use MPI."""

from __future__ import annotations

import os

from conformance.worker.channel import KEY_VARIABLE
from harness.clusters.launchers.starting import Command, Plan, Way


def commands(plan: Plan) -> list[Command]:
    """Return the `mpirun` command; OMPI_COMM_WORLD_RANK is the rank, variables are passed
    by name.
    """
    words = ["mpirun", "-n", f"{plan.hosts}", "--map-by", "node", "--bind-to", "none"]
    # More processes than slots: hosts are asked for one by one here, and threads are workers'.
    words.append("--oversubscribe")
    if os.geteuid() == 0:
        words.append("--allow-run-as-root")
    if plan.names:
        words += ["--host", ",".join(plan.names)]
    for name in (KEY_VARIABLE, *plan.variables):
        words += ["-x", name]
    return [Command((*words, *plan.agent))]


WAY = Way("mpi", "Open MPI's mpirun", "mpirun", "Open MPI (Debian: openmpi-bin)", commands)
