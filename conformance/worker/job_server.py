"""Forks the processes of jobs from one Python that has imported jax, in the jobs' own environment.

An import of jax takes a second of CPU time, and most jobs want to see what a process does after it.
`run` is for the probe; the other side is this module as a program, which listens on a socket and
forks a handler for each job, the job's parent. A server outlives the workers that use it: their
zygote starts it. A process of a job is what `python -u PROGRAM` would be after `import jax`: it
leads a session, has the job's environment, folder, arguments and output files, runs the program as
`__main__`, and ends as Python does. What is about the import or the command line is started by
`jobs.run_job` instead.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import hashlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.worker.deadlines import POLL_S as ASK_AGAIN_S
from conformance.worker.deadlines import ZYGOTE_START_S
from conformance.worker.descent import descendants, end_with_parent, kill_with_descendants
from conformance.worker.folders import own
from conformance.worker.jobs import POLL_S, Ended, Job, Place, end_all, reserve, watch

IDLE_S = 120.0  # after which a server ends that nobody asks: it holds an import of jax, some 200 MB
_READ_BY_IMPORT = ("JAX_", "XLA_", "TF_", "LD_")  # variables that the import looks at
_COMPILES_WITH = ("jax._src.hijax", "jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo")
_GREETING = b"ready\n"  # until it is sent, nothing of a job was started
_MOST_REQUEST = 1 << 20  # bytes


class JobServerError(RuntimeError):
    """The process that forks jobs ended, or could not fork; the text says what is known."""


# --- The probe's side -----------------------------------------------------------------------------


class JobServers:
    """The servers that a process and its forks share, one for each environment of an import.

    `start` is how a server is started: by this process, unless it is a worker, whose zygote does it
    (`of_parent`).
    """

    def __init__(self) -> None:
        self.cpu_seconds = 0.0  # that the jobs of this process have used
        self.start: Callable[[str, Mapping[str, str]], None] = self._start
        self._folder = Path()
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def of_parent(self, requests: socket.socket) -> None:
        """In a forked process: have the parent start servers, asked by datagrams."""

        def request(name: str, variables: Mapping[str, str]) -> None:
            requests.send(json.dumps([name, dict(variables)]).encode())

        self.start = request

    def answer(self, requests: socket.socket) -> None:
        """Start the server that a forked process has asked for."""
        self.start(*json.loads(requests.recv(_MOST_REQUEST)))

    def make_folder(self) -> None:
        """Make the private folder of the servers' sockets, unless it is there."""
        if not self._folder.name:
            self._folder = Path(tempfile.mkdtemp(prefix="conformance-jobs-"))

    def own_folder(self) -> None:
        """Make the folder, which the next run removes where this process is killed."""
        self.make_folder()
        own(self._folder)

    def run(self, job: Job) -> list[Ended]:
        """Run a job, as `jobs.run_job` does, and return how each process ended.

        JobServerError if its processes could not be started.
        """
        read = sorted(one for one in job.variables.items() if one[0].startswith(_READ_BY_IMPORT))
        name = hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]
        with self._connected(name, job) as connection, connection.makefile("rw") as lines:
            with contextlib.suppress(OSError):  # how it ended is said below
                print(json.dumps(dataclasses.asdict(job)), file=lines, flush=True)
            line = _line(lines.readline)
        if not line:
            raise JobServerError("the process that forks a job ended before the job did")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise JobServerError(f"no process could be forked for a job: {answer['failed']}")
        self.cpu_seconds += answer["cpu_seconds"]
        return [Ended(**one) for one in answer["ended"]]

    def _connected(self, name: str, job: Job) -> socket.socket:
        """Return a connection to a handler of the server, which is started where none answers."""
        self.make_folder()
        deadline = time.monotonic() + ZYGOTE_START_S
        while time.monotonic() < deadline:
            connection = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):  # it is not there, or ended just now
                connection.connect(str(self._folder / name))
                if connection.recv(len(_GREETING), socket.MSG_WAITALL) == _GREETING:
                    return connection
            connection.close()
            self.start(name, job.variables)
            time.sleep(ASK_AGAIN_S)
        raise JobServerError(
            f"no process that forks jobs answered within {ZYGOTE_START_S:g} s: run "
            f"{sys.executable} -c 'import jax' in the job's environment"
        )

    def _start(self, name: str, variables: Mapping[str, str]) -> None:
        running = self._started.get(name)
        if running is None or running.poll() is not None:
            self._started[name] = subprocess.Popen(
                [sys.executable, "-u", "-m", __name__, str(self._folder / name)],
                stdin=subprocess.DEVNULL,
                env=dict(variables) | {"PYTHONPATH": str(Path(__file__).parents[2])},
            )

    def close(self) -> None:
        """End the servers that this process has started, and remove their folder."""
        for one in self._started.values():
            kill_with_descendants(one.pid)
            one.wait()
        self._started.clear()
        if self._folder.name:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = Path()


def _line(read: Callable[[], str]) -> str:
    try:
        return read()
    except OSError:  # a reset: the other side is gone
        return ""


SERVERS = JobServers()  # of this process, and of the workers that are forked from it


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


def listen(address: str) -> socket.socket | None:
    """Fork a handler for each connection until none comes for a while.

    In each handler this returns its connection, and in the server None.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        Path(address).unlink(missing_ok=True)  # of a server that was killed
        listener.bind(address)
        listener.listen()
        listener.settimeout(IDLE_S)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if not _reap():
                    return None
                continue
            if _fork() == 0:
                connection.settimeout(None)
                return connection
            connection.close()
            _reap()


def _reap() -> bool:
    """Reap the handlers that have ended; return whether others run."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def handle(connection: socket.socket) -> tuple[Job, Place] | None:
    """Run the job that is asked for; end it if who asked for it is gone.

    In each process of the job this returns what that process is to run, and in the handler None.
    """
    connection.sendall(_GREETING)
    lines = connection.makefile("rw")
    line = _line(lines.readline)
    if not line:
        return None
    job = Job(**json.loads(line))
    before = _children_s()
    reserved = reserve(job)  # no `with`: a forked process leaves without giving it back
    started: list[Forked] = []
    try:
        for place in reserved.places:
            pid = _fork()
            if pid == 0:
                os.close(connection.detach())
                return job, place
            started.append(Forked(pid))
    except OSError as error:
        end_all(started)
        answer: dict[str, Any] = {"failed": str(error)}
    else:
        ended = watch(job, reserved.places, started, functools.partial(_is_gone, connection))
        answer = {
            "ended": [dataclasses.asdict(one) for one in ended],
            "cpu_seconds": _children_s() - before,
        }
    reserved.close()
    with contextlib.suppress(OSError):  # who asked is gone
        print(json.dumps(answer), file=lines, flush=True)
    return None


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the other side is gone: it sends nothing while it waits for the answer."""
    return bool(select.select([connection], [], [], 0)[0])


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
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    os.chdir(place.folder)
    tempfile.tempdir = None
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


def _end() -> None:
    """End with the process that started this one: its jobs first."""
    for one in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    shutil.rmtree(Path(sys.argv[1]).parent, ignore_errors=True)
    os._exit(1)


def _as_started_by_a_shell() -> None:
    """Undo what this process inherits of its parent's signals and output."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    os.dup2(2, 1)


def import_what_compiles() -> None:
    """Import what JAX imports when it first compiles, so that no forked process has to."""
    for module in _COMPILES_WITH:
        with contextlib.suppress(ImportError):  # JAX's own affair: another one may lack it
            importlib.import_module(module)


def _import_jax() -> None:
    importlib.import_module("jax")
    import_what_compiles()
    # What is imported stays: nobody looks for garbage in it, and no page of it is copied for that.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    end_with_parent(_end)
    _as_started_by_a_shell()
    _import_jax()
    tempfile.tempdir = str(Path(sys.argv[1]).parent)  # so that a killed job's folder goes with it
    asked = listen(sys.argv[1])
    to_run = handle(asked) if asked else None
    if to_run is not None:
        become(*to_run)
        # Not within a function: what ends this program unwinds to the top, as in any other.
        _module, _code = main_module(to_run[0].program)
        exec(_code, _module.__dict__)
