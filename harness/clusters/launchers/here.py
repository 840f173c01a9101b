"""The launcher `here`: several agents on this machine, each acting as a host of its own."""

from __future__ import annotations

from harness.clusters.launchers.starting import Command, Plan, Way


def commands(plan: Plan) -> list[Command]:
    """Return one command per agent."""
    return [Command(("env", *plan.agent, "--rank", str(rank))) for rank in range(plan.hosts)]


WAY = Way("local", "several agents on this machine", "env", "every system", commands)
