"""The processes of a script's job: started, read, asked for their stacks, and ended.

Every wait is bounded: `watch` returns when something happened or its time is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from conformance.worker.deadlines import KILL_S
from conformance.worker.descent import kill_with_descendants
from conformance.worker.output import STACK_BYTES, Output, await_stacks, tail
from harness.usercode import entry
from harness.usercode.ending import Process, Raised

POLL_S = 0.05  # how often ends are looked for
READ_BYTES = 64 * 1024
LAST_OUTPUT_S = 1.0  # for what a process left in its pipes; what it started may keep them open


class Takes(Protocol):
    """Takes what a process writes to a stream."""

    def take(self, data: bytes) -> None:
        """Take the next bytes."""


class Streams(Protocol):
    """Where the processes of a job write, in the order of their numbers."""

    @property
    def out(self) -> Sequence[Takes]:
        """Standard output of each."""

    @property
    def err(self) -> Sequence[Takes]:
        """Standard error of each."""


@dataclass(frozen=True, slots=True)
class Program:
    """What every process runs: `python SCRIPT arguments`, or a module where `module` says so."""

    python: Path
    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False


@dataclass
class Running:
    """One process, with what is known of its end so far."""

    number: int
    popen: subprocess.Popen[bytes]
    stacks: Path
    notes: bytearray = field(default_factory=bytearray)
    note: dict[str, Any] = field(default_factory=dict)
    ended_at: float | None = None
    killed: bool = False  # by this command, before it ended
    stack: str = ""

    @property
    def failed(self) -> bool:
        """Return whether its script or the process itself has failed."""
        return bool(self.note.get("exit")) or bool(self.ended_at and self.popen.returncode)

    def take_note(self, data: bytes) -> None:
        """Read what the script's process wrote of its end."""
        self.notes += data
        *whole, rest = bytes(self.notes).split(b"\n")
        self.notes = bytearray(rest)
        for line in whole:
            with contextlib.suppress(ValueError):
                self.note = json.loads(line)

    def ended(self, began: float) -> Process:
        """Return how it ended, in seconds after `began`."""
        note, at = self.note, self.ended_at
        moments = [one for one in (note.get("at"), at) if one is not None]
        raised = None
        if "raised" in note:
            raised = Raised(note["raised"], note["message"], note["where"])
        return Process(
            self.number,
            None if self.killed else self.popen.returncode,
            max(0.0, min(moments, default=time.monotonic()) - began),
            note.get("exit"),
            raised,
            self.stack,
            note.get("jax"),
            note.get("processes"),
        )


class Processes:
    """The processes of one job, from their start to `close`, which ends all that still run.

    `folder` takes their stacks; `environments` has the variables of each.
    """

    def __init__(
        self,
        program: Program,
        environments: Sequence[Mapping[str, str]],
        streams: Streams,
        folder: Path,
    ) -> None:
        self.began = time.monotonic()
        self.running: list[Running] = []
        self._selector = selectors.DefaultSelector()
        try:
            for number, environment in enumerate(environments):
                self._start(program, number, environment, streams, folder)
        except BaseException:
            self.close()
            raise

    def watch(self, timeout_s: float) -> None:
        """Print what the processes write and note their ends, for `timeout_s` at the most."""
        self._read(min(timeout_s, POLL_S) if self._alive else 0.0)
        for one in self._alive:
            self._look(one)

    def records(self) -> list[Process]:
        """Return how each process ended, or is so far."""
        return [one.ended(self.began) for one in self.running]

    @property
    def changes(self) -> Sequence[object]:
        """Return what differs as soon as one has failed, ended or written its stack."""
        return [(one.failed, one.ended_at, one.stack) for one in self.running]

    @property
    def failed(self) -> bool:
        """Return whether a process of the job has failed."""
        return any(one.failed for one in self.running)

    @property
    def over(self) -> bool:
        """Return whether all have ended."""
        return not self._alive

    def ask_stacks(self) -> None:
        """Have each process that runs write its Python stacks, and keep them."""
        asked = self._alive
        for one in asked:
            with contextlib.suppress(ProcessLookupError):
                one.popen.send_signal(signal.SIGUSR1)
        if asked:
            await_stacks([Output(one.stacks, one.stacks) for one in asked])
        for one in asked:
            one.stack = _without_entry(tail(one.stacks, STACK_BYTES))

    def interrupt(self) -> None:
        """Send SIGINT to each process that runs, and to those of its group."""
        for one in self._alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.popen.pid, signal.SIGINT)

    def end(self) -> None:
        """End each process that runs by SIGKILL, with all that it started."""
        for one in self._alive:
            one.killed = True
            kill_with_descendants(one.popen.pid)
        until = time.monotonic() + KILL_S
        while self._alive and time.monotonic() < until:
            self.watch(POLL_S)

    def finish(self) -> None:
        """Read what ended processes left in their pipes, for a moment at the most."""
        until = time.monotonic() + LAST_OUTPUT_S
        while self._selector.get_map() and time.monotonic() < until:
            self._read(POLL_S)

    def close(self) -> None:
        """End what still runs, and close the pipes."""
        self.end()
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    @property
    def _alive(self) -> list[Running]:
        return [one for one in self.running if one.ended_at is None]

    def _start(
        self,
        program: Program,
        number: int,
        environment: Mapping[str, str],
        streams: Streams,
        folder: Path,
    ) -> None:
        stacks = folder / f"process-{number}.stacks"
        here, there = os.pipe()
        settings = {
            "parent": os.getpid(),
            "notes": there,
            "stacks": str(stacks),
            "module": program.module,
        }
        try:
            popen = subprocess.Popen(
                [program.python, entry.__file__, program.script, *program.arguments],
                env={**environment, entry.SETTINGS_VARIABLE: json.dumps(settings)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(there,),
                start_new_session=True,  # Ctrl-C is this command's to answer
            )
        except BaseException:
            os.close(here)
            raise
        finally:
            os.close(there)
        one = Running(number, popen, stacks)
        self.running.append(one)
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._register(popen.stdout, streams.out[number].take)
        self._register(popen.stderr, streams.err[number].take)
        self._register(os.fdopen(here, "rb", buffering=0), one.take_note)

    def _register(self, stream: IO[bytes], take: Callable[[bytes], None]) -> None:
        os.set_blocking(stream.fileno(), False)
        self._selector.register(stream, selectors.EVENT_READ, take)

    def _read(self, timeout_s: float) -> None:
        if not self._selector.get_map():
            time.sleep(timeout_s)
            return
        for key, _ in self._selector.select(timeout_s):
            try:
                data = os.read(key.fd, READ_BYTES)
            except BlockingIOError:
                continue
            if data:
                key.data(data)
            else:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]

    def _look(self, running: Running) -> None:
        pid = running.popen.pid
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        running.ended_at = time.monotonic()
        # What it left in its group must go while the group is certainly its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        running.popen.wait()


def _without_entry(stack: str) -> str:
    """Return a stack without the frames in which the script was started."""
    ours = f'File "{entry.__file__}"'
    return "\n".join(line for line in stack.splitlines() if ours not in line)
