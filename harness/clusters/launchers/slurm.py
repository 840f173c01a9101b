"""Slurm: one task on each node, in the allocation that pytest runs in, or in one of its own."""

from __future__ import annotations

from harness.clusters.launchers.starting import Command, Plan, Way


def commands(plan: Plan) -> list[Command]:
    """`srun`; SLURM_PROCID is the rank, and the key is among the variables that it hands on."""
    words = ["srun", f"--nodes={plan.hosts}", f"--ntasks={plan.hosts}", "--ntasks-per-node=1"]
    # A step beside others of the allocation; one that outlives the loss of a task.
    words += ["--overlap", "--kill-on-bad-exit=0", "--export=ALL"]
    if plan.names:
        words.append(f"--nodelist={','.join(plan.names)}")
    return [Command((*words, *plan.agent))]


WAY = Way("slurm", "Slurm's srun", "srun", "Slurm (Debian: slurm-client)", commands)
