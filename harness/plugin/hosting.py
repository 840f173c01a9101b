"""The options about hosts, their checks, and the address on which agents connect."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.commandline import limits
from conformance.worker.deadlines import HOSTS_S
from harness.clusters.launchers import here, slurm
from harness.running import listening, shares
from harness.running.fleet import WAYS, Hosts, key_of
from harness.targets import platforms

if TYPE_CHECKING:
    import pytest

MOST_HOSTS = 10_000


def add(group: pytest.OptionGroup) -> None:
    """Declare the options about hosts."""
    group.addoption(
        "--hosts",
        type=limits.whole(1, MOST_HOSTS),
        metavar="N",
        help="run on N hosts, on each of which `pmap-conformance agent` dials in; with -n they "
        "are divided among the test processes",
    )
    group.addoption(
        "--listen",
        type=limits.address,
        metavar="HOST:PORT",
        help="where agents dial in (default: a free port of the interface that the launcher's "
        "hosts reach: of loopback for local; 0.0.0.0 is all interfaces)",
    )
    group.addoption(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="the key that agents must have too; made where it is not there",
    )
    group.addoption(
        "--launcher",
        choices=sorted(WAYS),
        help="start the agents: " + "; ".join(f"{key}: {one.text}" for key, one in WAYS.items()),
    )
    group.addoption(
        "--host-list", default="", metavar="A,B", help="the hosts by name, in the order of ranks"
    )
    group.addoption(
        "--hosts-within",
        type=limits.patience,
        default=HOSTS_S,
        metavar="SECONDS",
        help="how long hosts are waited for (default: %(default)g)",
    )


def processes_of(config: pytest.Config) -> int:
    """Return how many test processes `-n` asks for; 0 without it, when this process runs
    the cells.
    """
    return len(config.getoption("tx", None) or ())


def hosts_of(
    config: pytest.Config, platform: platforms.Platform, progress: Callable[[str], None]
) -> Hosts | None:
    """Return what the options ask of hosts; ValueError if that is impossible."""
    hosts = _hosts(config)
    if hosts is None:
        return None
    if platform.has_devices and hosts.launcher == here.WAY.key:
        raise ValueError(
            f"--launcher local with --platform {platform.name}: several agents on this machine "
            "would each take all of its devices: leave out --hosts and --launcher"
        )
    if platform.has_devices and not config.getoption("topology"):
        raise ValueError(
            f"--platform {platform.name} with --hosts: what the hosts have is known only when they "
            f"come: say --topology, such as {hosts.count}x4 where each has 4 devices"
        )
    among = processes_of(config)
    if hosts.launcher == slurm.WAY.key and not hosts.names and among > 1:
        hosts = replace(hosts, names=slurm.allocated(os.environ)[: hosts.count])
    if among:
        refused = shares.refusal(hosts, among, platform.name)
        if refused is not None:
            raise ValueError(refused)
        progress(shares.describe_shares(hosts, among))
    return hosts


def _hosts(config: pytest.Config) -> Hosts | None:
    count, launcher = config.getoption("hosts"), config.getoption("launcher")
    names = tuple(name for name in config.getoption("host_list").split(",") if name)
    if count is None and names and launcher != "tpu-pod":
        count = len(names)
    if count is None:
        if launcher or config.getoption("key_file"):
            raise ValueError("--launcher and --key-file are about hosts: say how many, --hosts N")
        return None
    listen, key_file = config.getoption("listen"), config.getoption("key_file")
    by_hand = listen is not None and key_file is not None and limits.parse_address(listen)[1] > 0
    if launcher is None and not by_hand:
        raise ValueError(
            "--hosts without --launcher: agents must know where to dial and with which key: give "
            "--listen HOST:PORT and --key-file FILE"
        )
    if key_file is not None:
        key_of(key_file)
    if listen is None:
        listen = listening.default(WAYS[launcher], names, os.environ)
    return Hosts(count, listen, key_file, launcher, names, config.getoption("hosts_within"))
