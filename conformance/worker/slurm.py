"""A Slurm on this machine for the time it is used: munged, slurmctld and slurmd.

They run with their own configuration, keys and ports, and listen on the loopback interface only: a
Slurm installation of the machine is not touched.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from conformance.worker.jobs import found
from conformance.worker.ports import ReservedPort

START_S = 90.0  # for daemons to answer, on a loaded machine; a case's deadline is longer
END_S = 10.0
POLL_S = 0.05
ASK_S = 10.0  # for one answer of a command of Slurm's

CPUS = 8  # that the node says it has, however few the machine's are

# JAX makes its coordinator's port of the job's number: that modulo 4096, in the last 4096 ports.
PORTS = 4096
FIRST_PORT = 65536 - PORTS
TRIES = 50

_CONFIGURATION = """\
ClusterName=conformance
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
KillWait=1
FirstJobId={job}
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""
# All nodes are this machine: each has a daemon, and a port, of its own.
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus}\n"


class SlurmError(RuntimeError):
    """Slurm failed to start; the text is the end of its daemons' logs."""


@contextlib.contextmanager
def slurm(nodes: Sequence[str] = ("localhost",)) -> Iterator[dict[str, str]]:
    """Start Slurm with its own files; yield the variables by which its commands find it.

    On leaving, its jobs are cancelled and its daemons ended. SlurmError if it does not start.
    """
    coordinator, controller = _coordinator(), ReservedPort()
    ports = {name: ReservedPort() for name in nodes}
    job = PORTS + coordinator.port - FIRST_PORT
    # Not below a case's own folder: a daemon's socket has a path of at most 107 bytes, and munged
    # refuses one that not everybody may go through.
    home = Path(tempfile.mkdtemp(prefix="slurm-", dir=os.environ.get("TMPDIR", "/tmp")))
    home.chmod(0o711)
    for made in (home / "state", *(home / f"spool-{name}" for name in nodes)):
        made.mkdir(mode=0o711)
    (home / "plugstack.conf").touch()
    (home / "slurm.conf").write_text(
        _CONFIGURATION.format(
            controller=controller.port,
            user=pwd.getpwuid(os.geteuid()).pw_name,
            folder=home,
            job=job,
        )
        + "".join(
            _NODE.format(name=name, host=socket.gethostname(), port=one.port, cpus=CPUS)
            for name, one in ports.items()
        )
    )
    idle = ["idle"] * len(nodes)
    variables = {"SLURM_CONF": str(home / "slurm.conf")}
    # Slurm's daemons bind without SO_REUSEPORT; JAX's coordinator binds with it.
    controller.close()
    for one in ports.values():
        one.close()
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        _munge(home, daemons)
        _start(home, daemons, "slurmctld", "-D", "-f", variables["SLURM_CONF"])
        for name in nodes:
            _start(home, daemons, "slurmd", "-D", "-N", name, "-f", variables["SLURM_CONF"])
        _await(home, lambda: _ask(variables, "sinfo", "-h", "-N", "-o", "%T").split() == idle)
        yield variables
    finally:
        if len(daemons) > 1:
            with contextlib.suppress(SlurmError):
                _ask(variables, "scancel", "--full", str(job))
                _await(home, lambda: not _ask(variables, "squeue", "-h"), END_S)
        _end(daemons)
        coordinator.close()
        shutil.rmtree(home, ignore_errors=True)


def _coordinator() -> ReservedPort:
    """Reserve one of the ports that JAX derives from a job's number."""
    for port in random.sample(range(FIRST_PORT, FIRST_PORT + PORTS), TRIES):
        with contextlib.suppress(OSError):
            return ReservedPort(port=port)
    raise SlurmError(f"none of {TRIES} ports from {FIRST_PORT} on is free")


def _munge(home: Path, daemons: list[subprocess.Popen[bytes]]) -> None:
    key, door = home / "munge.key", home / "munge.socket"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    files = [f"--key-file={key}", f"--socket={door}", f"--pid-file={home / 'munge.pid'}"]
    files += [f"--log-file={home / 'munge.log'}", f"--seed-file={home / 'munge.seed'}"]
    _start(home, daemons, "munged", "--foreground", *files)
    _await(home, door.exists)


def _start(home: Path, daemons: list[subprocess.Popen[bytes]], name: str, *words: str) -> None:
    """Start a daemon in the foreground, in this process's group, so that it ends with us."""
    with (home / f"{name}-{len(daemons)}.out").open("wb") as out:
        daemons.append(
            subprocess.Popen(
                [found(name) or name, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=home,
            )
        )


def _ask(variables: dict[str, str], *command: str) -> str:
    try:
        answer = subprocess.run(
            command,
            env=dict(os.environ) | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_S,
        )
    except subprocess.TimeoutExpired:
        return ""
    return answer.stdout.strip()


def _await(home: Path, there: Callable[[], bool], within_s: float = START_S) -> None:
    deadline = time.monotonic() + within_s
    while not there():
        if time.monotonic() > deadline:
            logs = [file.read_text(errors="replace")[-300:] for file in sorted(home.glob("*.out"))]
            raise SlurmError(f"Slurm did not do as asked within {within_s:g} s: {' / '.join(logs)}")
        time.sleep(POLL_S)


def _end(daemons: list[subprocess.Popen[bytes]]) -> None:
    """End the daemons in reverse order; munged, which the others use, is the last."""
    for one in reversed(daemons):
        one.terminate()
        try:
            one.wait(END_S)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()
