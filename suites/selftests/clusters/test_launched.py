"""Ways by which a launcher starts the agents: each on this machine, as two hosts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from proof import WITHIN_S, Told, needs, prove, variables
from servers import SSHD, Servers
from slurms import allocation, two_nodes

from harness.running.cells import CellId
from harness.running.fleet import Hosts

pytestmark = pytest.mark.long

HERE = "127.0.0.1:0"

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
        path = stack.enter_context(Servers(tmp_path, ("one", "two"))).path
        stack.enter_context(variables({"PATH": path}))
        hosts = Hosts(2, HERE, launcher="ssh", names=("one", "two"), within_s=WITHIN_S)
        prove(hosts, at_home)
