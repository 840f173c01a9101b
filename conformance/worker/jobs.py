"""Run a plain program as the processes of one job, as a user would start it, outside any worker.

A program for several processes gets three arguments: the coordinator's address, the number of
processes, and its own. Its output goes to files, because a process that hangs is not read from.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from conformance.worker.ports import ReservedPort
from conformance.worker.starving import Delays, delays, starved

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
    """How one process ended: its exit status, negative for a signal, None if it still ran.

    `at` is the time of that, by the clock `time.monotonic`, which all processes share.
    """

    status: int | None
    out: str
    err: str
    at: float | None = field(default=None, compare=False)

    @property
    def end(self) -> str:
        """The end as text, such as "exit 0", "SIGSEGV" or "hangs"."""
        if self.status is None:
            return "hangs"
        return signal.Signals(-self.status).name if self.status < 0 else f"exit {self.status}"


class Process(Protocol):
    """A started process that leads its own session; `subprocess.Popen` is one."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait `timeout` seconds for the exit status; else subprocess.TimeoutExpired."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program, and the processes that run it.

    A single process gets no arguments, unless it is `alone`: then it is a job of one process.
    `environment` is the whole environment of the processes, except for their number of devices.
    Processes that still run after `deadline_s` seconds are killed with their descendants; also once
    each process has printed something and for `quiet_s` seconds none has printed more, on standard
    output or error, or ended, and once all that still run are stopped. Seconds in which they had no
    core do not count.
    """

    program: str
    processes: int
    devices: int  # of each process
    environment: Mapping[str, str]
    deadline_s: float = DEADLINE_S
    quiet_s: float | None = None
    alone: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment of each process."""
        return dict(self.environment) | {"JAX_NUM_CPU_DEVICES": str(self.devices)}


@dataclass(frozen=True, slots=True)
class Place:
    """Where one process of a job runs: its arguments, and the files that it writes to."""

    folder: Path
    number: int
    arguments: tuple[str, ...]

    @property
    def out(self) -> Path:
        """The file of standard output."""
        return self.folder / f"{self.number}.out"

    @property
    def err(self) -> Path:
        """The file of standard error."""
        return self.folder / f"{self.number}.err"


@dataclass(frozen=True, slots=True)
class Reserved:
    """The folder and port of a job; a process forked from the job's may forget them."""

    folder: Path
    port: ReservedPort | None
    places: tuple[Place, ...]

    def close(self) -> None:
        """Remove the folder and release the port."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.port:
            self.port.close()


def reserve(job: Job) -> Reserved:
    """Make a folder and reserve a port for a job."""
    port = ReservedPort() if job.alone or job.processes > 1 else None
    folder = Path(tempfile.mkdtemp(prefix="conformance-"))
    numbers = range(job.processes)
    arguments = [(port.address, str(job.processes), str(n)) if port else () for n in numbers]
    places = tuple(Place(folder, n, each) for n, each in zip(numbers, arguments, strict=True))
    for place in places:  # the job is watched as soon as it is started
        place.out.touch()
        place.err.touch()
    return Reserved(folder, port, places)


def run_job(job: Job, python: Path | None = None) -> list[Ended]:
    """Run a job, each process in a new `python` (default: this one); return how each ended."""
    python = python or Path(sys.executable)
    started: list[Process] = []
    reserved = reserve(job)
    try:
        try:
            started += (_start(python, job, place) for place in reserved.places)
        except BaseException:
            end_all(started)
            raise
        return watch(job, reserved.places, started)
    finally:
        reserved.close()


def _start(python: Path, job: Job, place: Place) -> subprocess.Popen[bytes]:
    with place.out.open("wb") as out, place.err.open("wb") as err:
        return subprocess.Popen(
            [str(python), "-u", job.program, *place.arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=job.variables,
            cwd=place.folder,
            start_new_session=True,
        )


def watch(
    job: Job,
    where: Sequence[Place],
    started: Sequence[Process],
    abandoned: Callable[[], bool] = lambda: False,
) -> list[Ended]:
    """Wait until the started processes of a job have ended, or end them; return how each ended.

    They are also ended once the job is `abandoned`.
    """
    try:
        deadline = time.monotonic() + job.deadline_s
        ended = _await(started, where, deadline, job.quiet_s, abandoned)
    finally:
        end_all(started)
    return [
        Ended(
            one.returncode if at is not None else None,
            read_output(place.out),
            read_output(place.err),
            at,
        )
        for one, at, place in zip(started, ended, where, strict=True)
    ]


def _await(
    started: Sequence[Process],
    where: Sequence[Place],
    deadline: float,
    quiet_s: float | None,
    abandoned: Callable[[], bool],
) -> list[float | None]:
    """Return when each ended; None for those that still run."""
    ended: list[float | None] = [None] * len(started)
    seen: list[float | None] = []
    since, before = time.monotonic(), _delays(started)
    while True:
        for number, one in enumerate(started):
            if ended[number] is None and one.poll() is not None:
                ended[number] = time.monotonic()
        running = [one for one, at in zip(started, ended, strict=True) if at is None]
        if all(map(_stopped, running)) or time.monotonic() > deadline or abandoned():
            return ended
        printed = [place.out.stat().st_size for place in where]
        told = [place.err.stat().st_size for place in where]  # such as the reason of an end to come
        if (now := [*printed, *told, *ended]) != seen:
            seen, since, before = now, time.monotonic(), _delays(started)
        if quiet_s is not None and all(printed):
            quiet = time.monotonic() - since
            if quiet > quiet_s and quiet > quiet_s + starved(before, _delays(started)):
                return ended
        time.sleep(POLL_S)


def _delays(started: Sequence[Process]) -> list[Delays]:
    return [delays(one.pid) for one in started]


def _stopped(one: Process) -> bool:
    """Return whether a signal stopped the process, so that it never ends by itself."""
    only_look = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, one.pid, only_look) is not None
    except ChildProcessError:  # it has just ended, and was not asked for its status yet
        return False


def end_all(started: Sequence[Process]) -> None:
    """Kill the job's running processes and everything in their groups."""
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
    """Return what a process wrote to a file, without lines of the collectives' library."""
    return _NOISE.sub("", file.read_text(encoding="utf-8", errors="replace"))


def found(program: str) -> str | None:
    """Return a program's path; None if it is not installed. Daemons are also found by non-root
    users.
    """
    places = [os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"]
    return shutil.which(program, path=os.pathsep.join(places))
