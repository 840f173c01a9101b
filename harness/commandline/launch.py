"""`launch`: a user's script as a job of several JAX processes, on this machine or on hosts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.commandline.ending import EXIT_INTERRUPTED
from conformance.commandline.limits import address, patience, seconds
from conformance.spec.names import CPU
from conformance.spec.topology import Topology
from conformance.worker.deadlines import HOSTS_S
from harness.commandline import options
from harness.commandline.command import DONE, FOUND, Action, UsageError, report_progress

if TYPE_CHECKING:
    from harness.targets.platforms import Platform
    from harness.usercode.ending import Job
    from harness.usercode.hosts import Hosts

TOPOLOGY = "2x2"
MOST_PROCESSES = 64  # on one machine
MOST_HOSTS = 1000
LAUNCHERS = ("local", "mpi", "slurm", "ssh")
EXAMPLE = """example:
  pmap-conformance launch train.py --topology 4x2 --target jax==0.9.2 -- --steps 100

The script calls jax.distributed.initialize() without arguments. Its options follow `--`.
It runs with your rights, in this folder and with your environment: launch only code that
you trust. What it prints has the number of the process before each line.
Ctrl-C shows where each process is, and ends all of them.

  pmap-conformance launch train.py --topology 4x2 --hosts a,b
  salloc --nodes=2 pmap-conformance launch train.py --topology 4x2 --hosts 2 --launcher slurm

On hosts it runs in the same folder, with the environment that the launcher gives it there."""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} SCRIPT [ARG ...] [options] [-- SCRIPT-OPTION ...]"
    parser.epilog = f"{EXAMPLE}\n\n{parser.epilog}"
    _add_program(parser)
    _add_cluster(parser)
    _add_hosts(parser)
    _add_limits(parser)
    options.add_format(parser, options.TEXT, options.JSON, options.MARKDOWN)


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help="a Python file; with -m a module's name")
    parser.add_argument(
        "arguments", metavar="ARG", nargs="*", default=[], help="arguments of the script"
    )
    parser.add_argument(
        "-m", "--module", action="store_true", help="SCRIPT is a module's name, as of `python -m`"
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topology",
        default=TOPOLOGY,
        metavar="NxD",
        help="processes x devices of each, such as 4x2 (default: %(default)s)",
    )
    parser.add_argument(
        "--target",
        default="current",
        metavar="SPEC",
        help="JAX to run: jax==0.9.0, newest, nightly, current, or a path of Python "
        "(default: %(default)s, the Python of this command)",
    )
    options.add_extras(parser)
    parser.add_argument(
        "--platform", default=CPU, metavar="NAME", help="cpu, cuda or tpu (default: %(default)s)"
    )


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hosts",
        metavar="A,B",
        help="run on these hosts, or on so many of the launcher's; they need this folder, this "
        "command's Python and the target's at the same paths (default: this machine)",
    )
    parser.add_argument(
        "--launcher",
        choices=LAUNCHERS,
        help="how hosts are reached (default: ssh); local is several agents on this machine",
    )
    parser.add_argument(
        "--listen",
        type=address,
        metavar="HOST:PORT",
        help="where hosts connect (default: a free port of the interface with the route to them)",
    )
    parser.add_argument(
        "--hosts-within",
        type=patience,
        default=HOSTS_S,
        metavar="SECONDS",
        help="how long hosts are waited for (default: %(default)g)",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deadline",
        type=seconds,
        metavar="SECONDS",
        help="when it still runs then, show each process's Python stack and end it (default: none)",
    )
    parser.add_argument(
        "--grace",
        type=patience,
        default=10.0,
        metavar="SECONDS",
        help="how long the others may go on once a process failed (default: %(default)g)",
    )
    parser.add_argument(
        "--log-dir", type=Path, metavar="DIR", help="keep each process's output: DIR/process-N.log"
    )


def _run(chosen: argparse.Namespace) -> int:
    hosts = _hosts(chosen)
    topology = _topology(chosen.topology, 1 if hosts is None else hosts.count)
    if not chosen.module:
        _check_script(Path(chosen.script))
    from harness.targets.platforms import named
    from harness.targets.target import provision
    from harness.usercode.ending import Outcome
    from harness.usercode.launching import Launch, launch
    from harness.usercode.printing import Printer
    from harness.usercode.processes import Program

    platform = named(chosen.platform)
    devices = _devices(platform, topology) if hosts is None else []
    extras = [*platform.packages, *chosen.extra]
    target = provision(chosen.target, extras=extras, progress=report_progress)
    _check_module(chosen, target.python)
    program = Program(
        target.python, chosen.script, (*chosen.arguments, *chosen.passed), chosen.module
    )
    plan = Launch(
        program,
        target,
        topology,
        platform,
        devices,
        chosen.deadline,
        grace_s=chosen.grace,
        hosts=hosts,
    )
    # Of a report for programs standard output has nothing else.
    out = sys.stdout if chosen.format == options.TEXT else sys.stderr
    printer = Printer(topology.processes, out, sys.stderr, chosen.log_dir)
    report_progress(f"{chosen.script} on {topology}, {target.spec}")
    try:
        job = launch(plan, printer, progress=report_progress)
    finally:
        printer.close()
    _report(job, chosen.format, printer.tail)
    if job.outcome is Outcome.INTERRUPTED:
        return EXIT_INTERRUPTED
    return DONE if job.outcome is Outcome.SUCCEEDED else FOUND


def _topology(text: str, hosts: int) -> Topology:
    topology = Topology.parse(text)
    if topology.processes > MOST_PROCESSES * hosts:
        raise UsageError(
            f"--topology {topology}: at most {MOST_PROCESSES} processes run on one machine"
        )
    if topology.processes < hosts:
        raise UsageError(
            f"--topology {topology} has fewer processes than --hosts ({hosts}); "
            "each host runs at least one"
        )
    return topology


def _hosts(chosen: argparse.Namespace) -> Hosts | None:
    """Return the hosts that the options name; None for this machine."""
    if chosen.hosts is None:
        if chosen.launcher or chosen.listen:
            raise UsageError("--launcher and --listen are about hosts: name them with --hosts A,B")
        return None
    if chosen.platform != CPU:
        raise UsageError(
            f"--hosts with --platform {chosen.platform}: only cpu is supported; start the script "
            "on each host yourself, where jax.distributed.initialize() finds its cluster"
        )
    from harness.clusters.launchers import ssh
    from harness.running import listening
    from harness.running.fleet import WAYS
    from harness.usercode.hosts import Hosts

    words = [name for name in chosen.hosts.split(",") if name]
    only_count = len(words) == 1 and words[0].isdecimal()
    count = int(words[0]) if only_count else len(words)
    names = () if only_count else tuple(words)
    if not 1 <= count <= MOST_HOSTS:
        raise UsageError(f"--hosts {chosen.hosts}: name 1 to {MOST_HOSTS} hosts, or their number")
    way = WAYS[chosen.launcher or "ssh"]
    if way is ssh.WAY and not names:
        raise UsageError(f"--hosts {chosen.hosts}: ssh needs the names: --hosts a,b")
    listen = chosen.listen or listening.default(way, names, os.environ)
    return Hosts(
        count,
        way,
        names,
        listen,
        listening.reached_by(listen, way),
        Path(sys.executable),
        chosen.hosts_within,
    )


def _check_script(script: Path) -> None:
    """Raise UsageError if a script is not a file; OSError if it is not readable."""
    if script.is_dir():
        raise UsageError(f"{script} is a folder: name a Python file, or a module with -m")
    with script.open("rb"):
        pass


def _check_module(chosen: argparse.Namespace, python: Path) -> None:
    """Raise UsageError if the module of -m is in neither this folder nor this command's Python."""
    if not chosen.module:
        return
    first = chosen.script.split(".")[0]
    here = Path(first).with_suffix(".py").is_file() or Path(first).is_dir()
    if not first.isidentifier() or (
        python == Path(sys.executable) and not here and find_spec(first) is None
    ):
        raise UsageError(f"-m {chosen.script}: no module is called {first}")


def _devices(platform: Platform, topology: Topology) -> list[Mapping[str, str]]:
    """Return the variables that give each process its own devices; ValueError if there are
    too few.
    """
    if not platform.has_devices:
        return []
    from harness.running import devices

    found = devices.present(platform, os.environ)
    devices.required(platform, found)
    if (unmet := devices.unmet(topology, found)) is not None:
        raise UsageError(f"--topology {topology} {unmet}")
    return list(devices.variables(platform, topology, found))


def _report(job: Job, format: str, tail: Callable[[int], str]) -> None:
    from harness.usercode import job_text

    if format == options.JSON:
        last = {one["process"]: tail(one["process"]) for one in job.record()["processes"]}
        record = job.record()
        for one in record["processes"]:
            one["output"] = last[one["process"]]
        print(json.dumps(record, indent=2))
    elif format == options.MARKDOWN:
        print(job_text.markdown(job, tail))
    for line in _lines(job):
        report_progress(line)


def _lines(job: Job) -> Iterator[str]:
    from harness.usercode import job_text
    from harness.usercode.ending import Outcome

    if job.outcome is not Outcome.FAILED:  # of those that lost a peer each line says enough
        yield from job_text.stacks(job)
    yield from job_text.summary(job)


ACTIONS = {"launch": Action(_add, _run, passes_on=True)}
