"""The launcher for a Cloud TPU pod slice: one agent on each worker's virtual machine.

`gcloud` passes no standard input to all workers, so the key is a file there (see docs/clusters.md).
"""

from __future__ import annotations

import shlex

from harness.clusters.launchers.starting import Command, Plan, Way

KEY_FILE = ".conformance-key"  # in the home of the user that logs in


def commands(plan: Plan) -> list[Command]:
    """Return the `gcloud compute tpus tpu-vm ssh --worker=all` command; TPU_WORKER_ID is the rank.

    ValueError unless the plan names exactly one slice.
    """
    if len(plan.names) != 1:
        raise ValueError("name the slice with --host-list NAME")
    variables = [f"{name}={value}" for name, value in plan.variables.items()]
    agent = shlex.join(["env", *variables, *plan.agent, "--key-file", KEY_FILE])
    words = ["gcloud", "compute", "tpus", "tpu-vm", "ssh", plan.names[0], "--worker=all"]
    return [Command((*words, f"--command={agent}"))]


WAY = Way("tpu-pod", "a TPU pod slice, by gcloud", "gcloud", "the Google Cloud CLI", commands)
