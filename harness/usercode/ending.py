"""How a job of a user's script ended: records, and which process failed first."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from conformance.commandline.ending import one_line

# JAX ends the peers of a process that is gone: with status 1 up to 0.8.3, then by SIGABRT.
_CODES_OF_A_PEER = (1, -signal.SIGABRT)
# What the peers of a process that is gone raise.
_MESSAGES_OF_A_PEER = re.compile(
    r"gloo|peer|coordination|heartbeat|UNAVAILABLE|DEADLINE_EXCEEDED|barrier", re.IGNORECASE
)


MOST_MESSAGE = 200  # characters of a message in a line


class Outcome(StrEnum):
    """How a whole job ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    HUNG = "hung"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that ended a script: its type, its message, and the user's innermost line."""

    type: str
    message: str
    where: str

    def __str__(self) -> str:
        line = one_line(self.message.strip().split("\n", 1)[0])
        line = line if len(line) <= MOST_MESSAGE else f"{line[:MOST_MESSAGE]}…"
        where = f" ({shorter(self.where)})" if self.where else ""
        return f"raised {self.type}{f': {line}' if line else ''}{where}"


@dataclass(frozen=True, slots=True)
class Process:
    """How one process ended.

    `code` is its exit status, negative for a signal; None if this command ended it. `seconds` is
    when it failed or ended, after the start. `script` is the status with which the script ended,
    even if the process continued; `stack` its Python stack, if requested. `host` is empty for this
    machine, and `lost` says why a host can no longer be observed.
    """

    number: int
    code: int | None
    seconds: float
    script: int | None = None
    raised: Raised | None = None
    stack: str = ""
    jax: str | None = None
    processes: int | None = None
    host: str = ""
    lost: str = ""

    @property
    def name(self) -> str:
        """The process's name, such as "process 1", or "process 1 on b" in a job on several
        hosts.
        """
        return f"process {self.number}{f' on {self.host}' if self.host else ''}"

    @property
    def failed(self) -> bool:
        """Return whether it raised, ended with another status than 0, or by a signal of its own."""
        return bool(self.code) or bool(self.script) or bool(self.lost)

    @property
    def follows(self) -> bool:
        """Return whether it ended as processes do that lost a peer."""
        if self.raised is not None:
            return _MESSAGES_OF_A_PEER.search(self.raised.message) is not None
        return self.code in _CODES_OF_A_PEER and self.script is None

    @property
    def end(self) -> str:
        """How it ended, such as "raised ValueError: ...", "killed by SIGSEGV" or "exit status
        0".
        """
        if self.lost:
            return f"host {self.host} was lost: {self.lost}"
        if self.raised is not None:
            return str(self.raised)
        if self.code is not None and self.code < 0:
            return f"killed by {signal_name(-self.code)}"
        status = self.code if self.code is not None else self.script
        if status is not None:
            return f"exit status {status}"
        where = user_frame(self.stack)
        return f"still running{f' at {where}' if where else ''}, ended by this command"


@dataclass(frozen=True, slots=True)
class Job:
    """How a script's job ended, with its processes in the order of their numbers."""

    outcome: Outcome
    topology: str
    target: str
    seconds: float
    processes: tuple[Process, ...]
    deadline_s: float | None = None

    @property
    def first(self) -> Process | None:
        """Return the process that failed first; None if none did.

        A process that ended because it lost a peer counts only if all failed so.
        """
        failed = sorted((p for p in self.processes if p.failed), key=lambda p: p.seconds)
        return next((p for p in failed if not p.follows), failed[0] if failed else None)

    @property
    def odd(self) -> Process | None:
        """Return the running process whose position is shared by the fewest others."""
        running = [p for p in self.processes if p.code is None]
        where = [user_frame(p.stack) for p in running]

        def oddness(pair: tuple[str, Process]) -> tuple[int, bool]:
            # Of as many, whoever is not inside JAX: who is there waits for the others.
            return where.count(pair[0]), "/jax/" in innermost(pair[1].stack)

        order = sorted(zip(where, running, strict=True), key=oddness)
        return order[0][1] if order else None

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        first = self.first
        return {
            "outcome": str(self.outcome),
            "topology": self.topology,
            "target": self.target,
            "seconds": round(self.seconds, 3),
            "deadline_seconds": self.deadline_s,
            "failed_first": None if first is None else first.number,
            "processes": [_record(one) for one in self.processes],
        }


def _record(process: Process) -> dict[str, Any]:
    code = process.code
    return {
        "process": process.number,
        **({"host": process.host} if process.host else {}),
        "end": process.end,
        "exit": code if code is not None and code >= 0 else None,
        "signal": signal_name(-code) if code is not None and code < 0 else None,
        "seconds": round(process.seconds, 3),
        "raised": None
        if process.raised is None
        else {
            "type": process.raised.type,
            "message": process.raised.message,
            "where": process.raised.where,
        },
        "stack": process.stack,
        "jax": process.jax,
        "joined": process.processes,
    }


def signal_name(number: int) -> str:
    """Return as in "SIGSEGV"; "signal 35" where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.*)')


def user_frame(stack: str) -> str:
    """Return `FILE:LINE in FUNCTION`, the innermost frame of the main thread outside of libraries.

    `stack` is faulthandler's text. Where all frames are a library's the innermost one is returned.
    """
    found = [match for line in _main_thread(stack) if (match := _FRAME.search(line))]
    own = [m for m in found if not re.search(r"-packages/|/lib/python3|<frozen", m["file"])]
    chosen = next(iter([*own, *found]), None)
    if chosen is None:
        return ""
    return shorter(f"{chosen['file']}:{chosen['line']} in {chosen['function']}")


def shorter(place: str) -> str:
    """Return a path relative to the working directory, if it is inside it."""
    return place.removeprefix(f"{Path.cwd()}{os.sep}")


def innermost(stack: str) -> str:
    """Return the line of the innermost frame of the main thread; empty where there is none."""
    return next((line for line in _main_thread(stack) if _FRAME.search(line)), "")


def _main_thread(stack: str) -> Sequence[str]:
    """Return the lines of the thread that answered the signal, which Python makes the main one."""
    lines = stack.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("Current thread")]
    return lines[starts[-1] + 1 :] if starts else lines
