"""The Slurm launcher: one task per node, in the allocation of the caller or a new one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from harness.clusters.launchers.starting import Command, Plan, Way

NODES_VARIABLE = "SLURM_JOB_NODELIST"  # of an allocation, for what runs in it
ASK_S = 10.0


def commands(plan: Plan) -> list[Command]:
    """Return the `srun` command; SLURM_PROCID is the rank, and the key is a variable that it
    exports.
    """
    words = ["srun", f"--nodes={plan.hosts}", f"--ntasks={plan.hosts}", "--ntasks-per-node=1"]
    # A step beside others of the allocation; whole nodes, where srun has to ask for one.
    words.append("--overlap" if os.environ.get(NODES_VARIABLE) else "--exclusive")
    # It is to outlive the loss of a task.
    words += ["--kill-on-bad-exit=0", "--export=ALL"]
    if plan.names:
        words.append(f"--nodelist={','.join(plan.names)}")
    return [Command((*words, *plan.agent))]


def allocated(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of the allocation that this process runs in; empty outside of one.

    ValueError if Slurm does not report them.
    """
    nodes = environment.get(NODES_VARIABLE)
    if not nodes:
        return ()
    command = ["scontrol", "show", "hostnames", nodes]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ValueError(
            f"the nodes of this allocation ({nodes}) could not be read: {error}: give --host-list"
        ) from error
    return tuple(done.stdout.split())


WAY = Way("slurm", "Slurm's srun", "srun", "Slurm (Debian: slurm-client)", commands)
