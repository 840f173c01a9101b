"""Forks the processes of jobs from one Python that has imported jax, in the jobs' own environment.

An import of jax takes a second of CPU time, and most jobs want to see what a process does after it.
`run` is for the probe; the other side is this module as a program, which waits for jobs on its
standard input. A forked process is what `python -u PROGRAM` would be after `import jax`: it leads a
session, has the job's environment, folder, arguments and output files, runs the program as
`__main__`, and ends as Python does. What is about the import or the command line is started by
`jobs.run_job` instead.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from conformance.worker.jobs import KILL_S, POLL_S, Ended, Job, Place, end_all, reserve, watch

MOST_SERVERS = 2  # that a process keeps: each holds an import of jax, some 200 MB
_READ_BY_IMPORT = ("JAX_", "XLA_", "TF_", "LD_")  # variables that the import looks at


class JobServerError(RuntimeError):
    """The process that forks jobs ended, or could not fork; the text says what is known."""


# --- The probe's side -----------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Server:
    """A server process, and the CPU time in seconds that its jobs have used."""

    process: subprocess.Popen[str]
    cpu_seconds: float = 0.0

    def end(self) -> None:
        """Kill it, and wait for its end."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


@dataclasses.dataclass(slots=True)
class JobServers:
    """The servers of this process, by the variables that their import of jax read; oldest first."""

    servers: dict[frozenset[tuple[str, str]], Server]

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time of the servers' jobs; an ended server's belongs to its parent."""
        return sum(server.cpu_seconds for server in self.servers.values())

    def run(self, job: Job) -> list[Ended]:
        """Run a job, as `jobs.run_job` does, and return how each process ended.

        JobServerError if its processes could not be started.
        """
        key = frozenset(
            (name, value)
            for name, value in job.variables.items()
            if name.startswith(_READ_BY_IMPORT)
        )
        server = self.servers.pop(key, None) or self._start(job)
        try:
            answer = _asked(server.process, job)
        except BaseException:
            server.end()
            raise
        server.cpu_seconds += answer["cpu_seconds"]
        self.servers[key] = server
        return [Ended(**one) for one in answer["ended"]]

    def _start(self, job: Job) -> Server:
        while len(self.servers) >= MOST_SERVERS:
            self.servers.pop(next(iter(self.servers))).end()
        return Server(
            subprocess.Popen(
                [sys.executable, "-u", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=job.variables | {"PYTHONPATH": str(Path(__file__).parents[2])},
                text=True,
            )
        )


def _asked(server: subprocess.Popen[str], job: Job) -> dict[str, Any]:
    assert server.stdin is not None
    assert server.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # how it ended is said below
        print(json.dumps(dataclasses.asdict(job)), file=server.stdin, flush=True)
    line = server.stdout.readline()
    if not line:
        status = server.wait(KILL_S)
        raise JobServerError(f"the process that forks jobs ended with exit status {status}")
    answer: dict[str, Any] = json.loads(line)
    if "failed" in answer:
        raise JobServerError(f"no process could be forked for a job: {answer['failed']}")
    return answer


SERVERS = JobServers({})  # of this process; a forked one has jobs of its own to ask for


def run(job: Job) -> list[Ended]:
    """Run a job from a Python that has imported jax and is kept; see `JobServers.run`."""
    return SERVERS.run(job)


# --- The server's side ----------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Forked:
    """A forked process of a job, with the interface of `jobs.Process`."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait at most `timeout` seconds for the end; subprocess.TimeoutExpired after that."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(POLL_S)
        return status


def serve(orders: TextIO, answers: TextIO) -> tuple[Job, Place] | None:
    """Run one job after the other until `orders` ends.

    In each forked process this returns what that process is to run, and in the server None.
    """
    for line in orders:
        job = Job(**json.loads(line))
        before = _children_s()
        reserved = reserve(job)  # no `with`: a forked process leaves without giving it back
        started: list[Forked] = []
        try:
            for place in reserved.places:
                pid = _fork()
                if pid == 0:
                    os.close(orders.fileno())
                    os.close(answers.fileno())
                    return job, place
                started.append(Forked(pid))
        except OSError as error:
            end_all(started)
            answer: dict[str, Any] = {"failed": str(error)}
        else:
            ended = watch(job, reserved.places, started)
            answer = {
                "ended": [dataclasses.asdict(one) for one in ended],
                "cpu_seconds": _children_s() - before,
            }
        reserved.close()
        print(json.dumps(answer), file=answers, flush=True)
    return None


def _fork() -> int:
    """Fork; return in the parent when the child leads a session, so that it can be killed by it."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # JAX warns of forking, as it has threads once a backend is initialised: here it has none.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        os.setsid()
    os.close(writing)
    if pid:
        os.read(reading, 1)
    os.close(reading)
    return pid


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def become(job: Job, place: Place) -> None:
    """Make this process what `python -u PROGRAM` in the job's environment would be."""
    os.chdir(place.folder)
    for file, descriptor in ((place.out, 1), (place.err, 2)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(job.variables)
    sys.argv = [job.program, *place.arguments]
    sys.path[0] = str(Path(job.program).parent)


def main_module(program: str) -> tuple[ModuleType, Any]:
    """Return an empty `__main__` module, which is put in the place of this one, and its code."""
    module = ModuleType("__main__")
    module.__dict__.update({"__file__": program, "__builtins__": __builtins__})
    sys.modules["__main__"] = module
    return module, compile(Path(program).read_bytes(), program, "exec")


def _protocol() -> tuple[TextIO, TextIO]:
    """Take standard input and output for jobs and answers; what is forked has neither."""
    orders, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return orders, answers


def _import_jax() -> None:
    importlib.import_module("jax")
    # What is imported stays: nobody looks for garbage in it, and no page of it is copied for that.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_jax()
    to_run = serve(*_protocol())
    if to_run is not None:
        become(*to_run)
        # Not within a function: what ends this program unwinds to the top, as in any other.
        _module, _code = main_module(to_run[0].program)
        exec(_code, _module.__dict__)
