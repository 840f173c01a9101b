"""Ways by which a launcher starts the agents: each on this machine, as two hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import until
from proof import WITHIN_S, Told, needs, prefixed, prove, variables
from slurms import allocation, two_nodes

from conformance.probing.ports import ReservedPort, wait_for_listener
from harness.running.cells import CellId
from harness.running.fleet import Hosts

pytestmark = pytest.mark.long

HERE = "127.0.0.1:0"
SSHD = "/usr/sbin/sshd"

Verdicts = Mapping[CellId, Told]


def test_agents_on_this_machine(at_home: Verdicts) -> None:
    prove(Hosts(2, HERE, launcher="local", within_s=WITHIN_S), at_home)


@pytest.mark.parametrize("processes", [2, 4])
def test_open_mpi(at_home: Verdicts, processes: int) -> None:
    needs("mpirun")
    prove(Hosts(processes, HERE, launcher="mpi", within_s=WITHIN_S), at_home)


@pytest.mark.parametrize("allocated", [False, True], ids=["alone", "in-an-allocation"])
def test_slurm_with_two_nodes(at_home: Verdicts, allocated: bool) -> None:
    with two_nodes() as found, ExitStack() as stack:
        stack.enter_context(variables(found))
        if allocated:
            stack.enter_context(variables(allocation()))
        prove(Hosts(2, HERE, launcher="slurm", within_s=WITHIN_S), at_home)


def test_ssh_to_two_servers(at_home: Verdicts, tmp_path: Path) -> None:
    needs("ssh", "ssh-keygen", SSHD, root=True)
    with ExitStack() as stack:
        path = stack.enter_context(_Servers(tmp_path, ("one", "two"))).path
        stack.enter_context(variables({"PATH": path}))
        hosts = Hosts(2, HERE, launcher="ssh", names=("one", "two"), within_s=WITHIN_S)
        prove(hosts, at_home)


class _Servers:
    """OpenSSH servers of this machine on ports and with keys of their own; a client for them."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder = folder
        self._ports = {name: ReservedPort() for name in names}
        self._servers: list[subprocess.Popen[bytes]] = []
        for key in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(words, check=True)
        config = folder / "config"
        common = (
            f"IdentityFile {folder / 'user'}\nStrictHostKeyChecking no\n"
            f"UserKnownHostsFile {folder / 'known'}\nLogLevel ERROR\n"
        )
        config.write_text(
            "".join(
                f"Host {name}\nHostName 127.0.0.1\nPort {one.port}\n{common}"
                for name, one in self._ports.items()
            )
        )
        self.path = prefixed(folder / "bin", "ssh", ["-F", str(config)])

    def __enter__(self) -> _Servers:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it leaves its privileges
        for name, one in self._ports.items():
            options = [
                *("ListenAddress=127.0.0.1", f"Port={one.port}", "StrictModes=no", "UsePAM=no"),
                *(f"HostKey={self._folder / 'host'}", f"PidFile={self._folder / name}.pid"),
                f"AuthorizedKeysFile={self._folder / 'user.pub'}",
                "PermitRootLogin=prohibit-password",
            ]
            words = [word for option in options for word in ("-o", option)]
            one.close()
            self._servers.append(
                subprocess.Popen([SSHD, "-D", "-e", "-f", "/dev/null", *words], stderr=-3)
            )
            assert wait_for_listener(f"127.0.0.1:{one.port}", WITHIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._servers:
            one.terminate()
            one.wait()
        assert until(lambda: all(one.poll() is not None for one in self._servers), WITHIN_S)
