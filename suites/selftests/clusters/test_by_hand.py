"""Agents that nothing of the harness starts: by a pod's command, and on hosts with own networks."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from proof import CATALOGUE, WITHIN_S, Told, needs, prove

from conformance.worker.channel import KEY_VARIABLE
from conformance.worker.ports import ReservedPort
from conformance.worker.zygote import CATALOGUE_VARIABLE
from harness.clusters.launchers import kubernetes
from harness.running.cells import CellId
from harness.running.fleet import Hosts, key_of
from harness.targets.target import provision, worker_environment

pytestmark = pytest.mark.long

Verdicts = Mapping[CellId, Told]


@dataclass
class Agents:
    """One command per rank, with its variables; those that ended can be started again."""

    commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        """Start those that do not run."""
        for rank, (words, variables) in enumerate(self.commands):
            if rank not in self.running or self.running[rank].poll() is not None:
                self.running[rank] = subprocess.Popen(words, env=variables)

    def close(self) -> None:
        for one in self.running.values():
            one.kill()
            one.wait()


@contextmanager
def started(commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> Iterator[Agents]:
    agents = Agents(commands)
    agents.start()
    try:
        yield agents
    finally:
        agents.close()


def free_port(host: str) -> int:
    port = ReservedPort(host)
    port.close()
    return port.port


def variables(**more: str) -> dict[str, str]:
    """Return the environment of an agent's host: the project's path, and further variables."""
    here = worker_environment(provision("current"), os.environ, catalogue=CATALOGUE)
    return {**here, CATALOGUE_VARIABLE: ",".join(CATALOGUE), **more}


def test_a_pods_command_with_a_pods_variables(at_home: Verdicts, tmp_path: Path) -> None:
    port, file = free_port("127.0.0.1"), tmp_path / "key"
    (pod,) = kubernetes.objects(2, "image")[2]["spec"]["replicatedJobs"]
    (container,) = pod["template"]["spec"]["template"]["spec"]["containers"]
    words = [
        {"python": sys.executable, f"{kubernetes.NAME}.default:{kubernetes.PORT}": one}.get(w, w)
        for one in [f"127.0.0.1:{port}"]
        for w in container["command"]
    ]
    assert [one["name"] for one in container["env"]] == [KEY_VARIABLE]
    given = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", KEY_VARIABLE: key_of(file)}
    ranks = [variables(**given, JOB_COMPLETION_INDEX=str(rank)) for rank in range(2)]
    with started([(words, one) for one in ranks]) as agents:
        hosts = Hosts(2, f"127.0.0.1:{port}", file, within_s=WITHIN_S)
        prove(hosts, at_home, agents.start)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Sequence[Sequence[str]]]:
    """Two hosts with a network of their own each, joined by a bridge: what starts a command there.

    Their names are theirs too: the libraries below JAX reach a host by the address that its own
    name has on it.
    """
    needs("ip", "unshare", "mount", root=True)
    token = secrets.token_hex(2)
    bridge, names = f"cb{token}", [f"ch{token}-{rank}" for rank in range(2)]
    addresses = [f"{BRIDGE}{10 + rank}" for rank in range(2)]
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "127.0.0.1 localhost\n"
        + "".join(f"{a} {n}\n" for a, n in zip(addresses, names, strict=True))
    )
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{BRIDGE}1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for rank, (name, address) in enumerate(zip(names, addresses, strict=True)):
            _ip("netns", "add", name)
            outer = f"cv{token}{rank}"
            _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", outer, "master", bridge, "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        enter = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'
        yield [
            [
                *("ip", "netns", "exec", name, "unshare", "--uts", "--mount"),
                *("sh", "-c", enter, "sh", name, str(hosts)),
            ]
            for name in names
        ]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name])
        subprocess.run(["ip", "link", "delete", bridge])


BRIDGE = "10.213.77."


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def test_hosts_with_networks_of_their_own(
    at_home: Verdicts, network: Sequence[Sequence[str]], tmp_path: Path
) -> None:
    port, file = free_port(f"{BRIDGE}1"), tmp_path / "key"
    key_of(file)
    agent = [sys.executable, "-m", "conformance.worker.agent", "--key-file", str(file)]
    commands = [
        ([*enter, *agent, "--controller", f"{BRIDGE}1:{port}", "--rank", str(rank)], variables())
        for rank, enter in enumerate(network)
    ]
    with started(commands) as agents:
        hosts = Hosts(2, f"{BRIDGE}1:{port}", file, within_s=WITHIN_S)
        said = prove(hosts, at_home, agents.start)
    for rank in range(2):
        assert any(f"-{rank} (rank {rank}) at {BRIDGE}1{rank}: " in line for line in said), said
