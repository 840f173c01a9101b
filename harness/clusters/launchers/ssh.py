"""The OpenSSH launcher: the `ssh` client with the user's configuration, once per host of a list."""

from __future__ import annotations

import shlex

from conformance.commandline.counting import counted
from conformance.worker.channel import KEY_VARIABLE
from harness.clusters.launchers.starting import Command, Plan, Way

# The shell of the other side reads the key, then becomes the agent.
READ_KEY = f"read -r {KEY_VARIABLE} && export {KEY_VARIABLE} && exec"


def commands(plan: Plan) -> list[Command]:
    """Return one `ssh` command per host; the order of the list gives the ranks. ValueError without
    a list.
    """
    if len(plan.names) != plan.hosts:
        some = counted(plan.hosts, "host")
        raise ValueError(f"name {some} with --host-list a,b,…; got {len(plan.names)}")
    return [
        Command(
            ("ssh", "-T", "-o", "BatchMode=yes", name, remote(plan, rank)),
            key_on_stdin=True,
            host=name,
        )
        for rank, name in enumerate(plan.names)
    ]


def remote(plan: Plan, rank: int) -> str:
    """Return the command line that runs on the remote host."""
    variables = [f"{name}={value}" for name, value in plan.variables.items()]
    return f"{READ_KEY} {shlex.join(['env', *variables, *plan.agent, '--rank', str(rank)])}"


UNREACHABLE = 255  # ssh's exit status for its own errors
WAY = Way(
    "ssh", "OpenSSH's client", "ssh", "OpenSSH (Debian: openssh-client)", commands, UNREACHABLE
)
