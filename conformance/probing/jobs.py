"""Runs a plain program as the processes of one job, as a user would start it: no worker of ours.

A program for several processes is given the coordinator's address, how many they are and which it
is, as its three arguments. Its output goes to files, since a process that hangs is not read from.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.catalogue.topology import Topology
from conformance.probing.ports import ReservedPort
from conformance.probing.starving import Delays, delays, starved

DEADLINE_S = 60.0
KILL_S = 10.0
POLL_S = 0.02

# What the collectives' library prints, whatever the program prints: it does so piece by piece, and
# its threads cut into each other's lines.
_NOISE = re.compile(
    r"\[Gloo\] Rank \d*|\d* is connected to \d*|\d* peer ranks\. "
    r"|Expected number of connected peer ranks is : \d*\n?"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How one process ended: its exit status, negative for a signal, None where it still ran.

    `at` is when that was seen, by the clock `time.monotonic`, which all processes share.
    """

    status: int | None
    out: str
    err: str
    at: float | None = field(default=None, compare=False)

    @property
    def end(self) -> str:
        """As in "exit 0", "SIGSEGV" or "hangs"."""
        if self.status is None:
            return "hangs"
        return signal.Signals(-self.status).name if self.status < 0 else f"exit {self.status}"


def run_job(
    python: Path,
    program: Path,
    topology: Topology,
    environment: Mapping[str, str],
    *,
    deadline_s: float = DEADLINE_S,
    quiet_s: float | None = None,
    alone: bool = False,
) -> list[Ended]:
    """Run `program` on each process of `topology`, and say how each ended.

    One process is given no arguments, but where `alone`: it is then a job of one. `environment`
    is all that the processes are given, beside the number of devices of each. Processes that still
    run after `deadline_s` seconds are killed, with what they started; so they are once each process
    has printed something and then, for `quiet_s` seconds, none printed more or ended, and once all
    that still run are stopped. Seconds in which they wanted a core and had none do not count.
    """
    variables = dict(environment) | {"JAX_NUM_CPU_DEVICES": str(topology.devices_per_process)}
    port = ReservedPort() if alone or topology.processes > 1 else None
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        outputs = [Path(folder, f"{n}") for n in range(topology.processes)]
        try:
            for number, output in enumerate(outputs):
                arguments = [port.address, str(topology.processes), str(number)] if port else []
                with (
                    output.with_suffix(".out").open("wb") as out,
                    output.with_suffix(".err").open("wb") as err,
                ):
                    started.append(
                        subprocess.Popen(
                            [str(python), "-u", str(program), *arguments],
                            stdin=subprocess.DEVNULL,
                            stdout=out,
                            stderr=err,
                            env=variables,
                            cwd=folder,
                            start_new_session=True,
                        )
                    )
            ended = _await(started, outputs, time.monotonic() + deadline_s, quiet_s)
        finally:
            _kill(started)
            if port:
                port.close()
        return [
            Ended(
                one.returncode if at is not None else None,
                read_output(output.with_suffix(".out")),
                read_output(output.with_suffix(".err")),
                at,
            )
            for one, at, output in zip(started, ended, outputs, strict=True)
        ]


def _await(
    started: list[subprocess.Popen[bytes]],
    outputs: list[Path],
    deadline: float,
    quiet_s: float | None,
) -> list[float | None]:
    """When each ended; None of those that still run."""
    ended: list[float | None] = [None] * len(started)
    seen: list[float | None] = []
    since, before = time.monotonic(), _delays(started)
    while True:
        for number, one in enumerate(started):
            if ended[number] is None and one.poll() is not None:
                ended[number] = time.monotonic()
        running = [one for one, at in zip(started, ended, strict=True) if at is None]
        if all(map(_stopped, running)) or time.monotonic() > deadline:
            return ended
        printed = [output.with_suffix(".out").stat().st_size for output in outputs]
        if (now := [*printed, *ended]) != seen:
            seen, since, before = now, time.monotonic(), _delays(started)
        if quiet_s is not None and all(printed):
            quiet = time.monotonic() - since
            if quiet > quiet_s and quiet > quiet_s + starved(before, _delays(started)):
                return ended
        time.sleep(POLL_S)


def _delays(started: list[subprocess.Popen[bytes]]) -> list[Delays]:
    return [delays(one.pid) for one in started]


def _stopped(one: subprocess.Popen[bytes]) -> bool:
    """A process that a signal stopped, and that therefore never ends by itself."""
    only_look = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, one.pid, only_look) is not None
    except ChildProcessError:  # it has just ended, and was not asked for its status yet
        return False


def _kill(started: list[subprocess.Popen[bytes]]) -> None:
    # All are stopped before one is killed, else another would tell of its end before its own.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in started:
            if one.poll() is None:
                # It leads a group of its own: nothing that it started outlives it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(one.pid, number)
    for one in started:
        one.wait(KILL_S)


def read_output(file: Path) -> str:
    """What a process wrote to a file, without what the collectives' library says."""
    return _NOISE.sub("", file.read_text(encoding="utf-8", errors="replace"))


def found(program: str) -> str | None:
    """Where a program lies, or None; daemons are found also by who is not root."""
    places = [os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"]
    return shutil.which(program, path=os.pathsep.join(places))
