"""`targets`, `agent`, `manifest`: where cells run, on this machine and on others.

An agent's host has only jax and numpy, so each command imports what it needs itself.
"""

from __future__ import annotations

import argparse

from harness.commandline.command import DONE, Action, report_progress


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """Declare no options."""


def _list(chosen: argparse.Namespace) -> int:
    from harness.targets.interpreters import find
    from harness.targets.target import cached, default_cache

    for interpreter in find():
        print(f"python {'.'.join(map(str, interpreter.version))}  {interpreter.path}")
    print(f"cache  {default_cache()}")
    for target in cached():
        extras = f" with {', '.join(target.extras)}" if target.extras else ""
        print(f"  {target.spec:<15} {target.python}{extras}")
    return DONE


def _add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", metavar="SPEC", nargs="+", help="jax==0.9.0, newest, nightly, all")


def _add(chosen: argparse.Namespace) -> int:
    from harness.targets.target import describe, expand_all, provision

    for spec in expand_all(chosen.specs):
        target = provision(spec, progress=report_progress)
        known = ", ".join(f"{name} {version}" for name, version in describe(target).items())
        print(f"{target.spec}: {known}")
    return DONE


def _add_agent(parser: argparse.ArgumentParser) -> None:
    from conformance.worker import agent

    agent.add(parser)


def _agent(chosen: argparse.Namespace) -> int:
    from conformance.worker import agent

    return agent.serve(chosen)


def _add_manifest(parser: argparse.ArgumentParser) -> None:
    from harness.clusters.launchers import kubernetes

    kubernetes.add(parser)


def _manifest(chosen: argparse.Namespace) -> int:
    from harness.clusters.launchers import kubernetes

    print(kubernetes.printed(chosen))
    return DONE


ACTIONS = {
    "targets list": Action(_add_nothing, _list),
    "targets add": Action(_add_add, _add),
    "agent": Action(_add_agent, _agent),
    "manifest": Action(_add_manifest, _manifest),
}
