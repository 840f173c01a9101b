"""`launch --hosts`: a script's job through the launchers of clusters, however it ends."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import started_launch
from processes import (
    ENDS_S,
    HANGS_S,
    before_its_end,
    gone,
    until,
)
from proof import needs, variables
from servers import SSHD, Servers
from slurms import two_nodes
from started_launch import launching

from conformance.commandline.ending import EXIT_INTERRUPTED
from conformance.worker.channel import KEY_VARIABLE
from harness.commandline.command import DONE, FAILED, FOUND

pytestmark = pytest.mark.long

TWO = ("one", "two")

JOINS = """
import os, jax, numpy
from jax.experimental import multihost_utils
jax.distributed.initialize()
here = numpy.array([jax.process_index()])
local = os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]
print(multihost_utils.process_allgather(here).ravel(), jax.device_count(), "local", local)
"""
FAILS = """
import os, time
def load():
    raise KeyError("no such shard")
if os.environ["JAX_PROCESS_ID"] == "2":
    load()
time.sleep(3600)
"""
# What it starts leads a session of its own, which a signal to the process's group does not reach.
WAITS = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
print("waiting", flush=True)
time.sleep(3600)
"""


def launch(folder: Path, script: str, *words: str) -> tuple[int, str]:
    """Exit status and output of a launch that ends; nothing of it is left on any host."""
    ended = started_launch.launch(folder, script, *words)
    assert until(lambda: not left_in(folder), ENDS_S), left_in(folder)
    return ended


def left_in(folder: Path) -> dict[int, str]:
    """The processes that run in a folder, as those of a job do on its hosts: ssh passes no mark."""
    found = {}
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (one / "cwd").readlink() == folder.resolve():
                found[int(one.name)] = (one / "cmdline").read_text()
    return found


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[None]:
    """An `ssh` that reaches the hosts `one` and `two`."""
    needs("ssh", "ssh-keygen", SSHD, root=True)
    servers = tmp_path / "servers"
    servers.mkdir()
    with ExitStack() as stack:
        path = stack.enter_context(Servers(servers, TWO)).path
        stack.enter_context(variables({"PATH": path}))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


BY_SSH = ("--hosts", ",".join(TWO))
HERE = ("--hosts", "2", "--launcher", "local")


def assert_joined(status: int, said: str, hosts: Mapping[int, str]) -> None:
    assert status == DONE, said
    for number, host in hosts.items():
        line = rf"^\[{number} {host} *\] \[0 1 2 3\] 8 local {number % 2}$"
        assert re.search(line, said, re.MULTILINE), said


def test_ssh(ssh: None, folder: Path) -> None:
    status, said = launch(folder, JOINS, "--topology", "4x2", *BY_SSH)
    assert_joined(status, said, {0: "one", 1: "one", 2: "two", 3: "two"})


def test_agents_of_this_machine(folder: Path) -> None:
    status, said = launch(folder, JOINS, "--topology", "4x2", *HERE)
    assert_joined(status, said, {0: r"\S+/0", 1: r"\S+/0", 2: r"\S+/1", 3: r"\S+/1"})


def test_open_mpi(folder: Path) -> None:
    needs("mpirun")
    words = ("--hosts", "2", "--launcher", "mpi")
    status, said = launch(folder, JOINS, "--topology", "4x2", *words)
    assert_joined(status, said, dict.fromkeys(range(4), r"\S+"))


def test_slurm(folder: Path) -> None:
    with two_nodes() as found, variables(found):
        words = ("--hosts", "2", "--launcher", "slurm")
        status, said = launch(folder, JOINS, "--topology", "4x2", *words)
    assert_joined(status, said, {0: "n0", 1: "n0", 2: "n1", 3: "n1"})


def test_the_first_failure_is_named_with_its_host(ssh: None, folder: Path) -> None:
    words = ("--topology", "4x1", "--grace", "1", *BY_SSH)
    status, said = launch(folder, FAILS, *words)
    assert status == FOUND, said
    first = r"process 2 on two failed first, .*: raised KeyError: 'no such shard' \(script.py:4 in"
    assert re.search(first, said), said
    assert re.search(r"then processes 0, 1, 3: .*script\.py:7", said)


def test_a_deadline_shows_the_stacks_of_all_hosts(ssh: None, folder: Path) -> None:
    status, said = launch(folder, WAITS, "--topology", "2x1", "--deadline", "5", *BY_SSH)
    assert status == FOUND, said
    for number, host in enumerate(TWO):
        assert f"process {number} on {host}, Python" in said
    assert "hung: " in said


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_command_is_ended(
    ssh: None, folder: Path, kill: signal.Signals
) -> None:
    with launching(folder, WAITS, "--topology", "2x1", *BY_SSH) as (process, mark, log):
        assert before_its_end(process, lambda: log.read_text().count("waiting") == 2)
        assert left_in(folder)
        process.send_signal(kill)
        status = process.wait(ENDS_S)
        assert gone(mark, ENDS_S)
        assert until(lambda: not left_in(folder), ENDS_S), left_in(folder)
        if kill == signal.SIGINT:
            assert status == EXIT_INTERRUPTED
            assert "process 1 on two, Python" in log.read_text()


def test_a_host_that_is_lost_is_named(ssh: None, folder: Path) -> None:
    script = 'import time\nprint("waiting", flush=True)\ntime.sleep(3600)'
    words = ("--topology", "2x1", "--grace", "1", *BY_SSH)
    with launching(folder, script, *words) as (process, mark, log):
        assert before_its_end(process, lambda: log.read_text().count("waiting") == 2)
        agents = [pid for pid, line in left_in(folder).items() if line.endswith("--rank\x001\x00")]
        os.kill(agents[0], signal.SIGKILL)
        assert process.wait(HANGS_S) == FOUND
        assert gone(mark, ENDS_S)
        assert "1 on two failed first" in log.read_text()
        assert "two was lost" in log.read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--hosts", "one,nowhere"), "host nowhere could not be reached: ssh ended with status"),
        (("--hosts", "one,two", "--topology", "1x2"), "fewer processes than --hosts"),
        (("--launcher", "ssh"), "name them with --hosts"),
        (("--hosts", "0"), "name 1 to"),
        (("--hosts", "2"), "ssh needs the names"),
        (("--hosts", "one,two", "--platform", "tpu"), "only cpu is supported"),
    ],
)
def test_what_cannot_start_says_why(
    ssh: None, folder: Path, words: tuple[str, ...], why: str
) -> None:
    status, said = launch(folder, "", *words)
    assert status == FAILED
    assert why in said


def test_the_key_is_no_argument_and_does_not_reach_the_script(folder: Path) -> None:
    script = f"import os\nprint(os.environ.get({KEY_VARIABLE!r}), os.environ.get('PYTHONSAFEPATH'))"
    status, said = launch(folder, script, "--topology", "2x1", *HERE)
    assert status == DONE
    assert said.count("] None None\n") == 2
