"""Workers on this machine, forked from one zygote per target."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.clusters.channel import ADDRESS_VARIABLE, KEY_VARIABLE, Channel, Rubbish
from harness.clusters.deadlines import KILL_S, ZYGOTE_START_S
from harness.clusters.hub import Hub
from harness.clusters.launchers import Exit, TargetDown
from harness.clusters.zygote import CATALOGUE_VARIABLE, PLACE_VARIABLE

TAIL_BYTES = 4000  # of a log shown with a failure


class LocalLauncher:
    """One zygote of `python`, started on the first request, and the workers forked from it."""

    def __init__(
        self,
        python: Path,
        environment: Mapping[str, str],
        hub: Hub,
        folder: Path,
        catalogue: Sequence[str],
        start_timeout_s: float = ZYGOTE_START_S,
    ) -> None:
        self._python = python
        self._environment = environment
        self._hub = hub
        self._log = folder / "zygote.log"
        self._catalogue = catalogue
        self._start_timeout_s = start_timeout_s
        self._zygote: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._exits: dict[int, int] = {}

    def warm_up(self) -> None:
        """Start the zygote if it is not there and wait until it can fork; TargetDown if not."""
        if self._channel is not None:
            return
        place = f"zygote-{os.getpid()}-{id(self)}"
        environment = {
            **self._environment,
            ADDRESS_VARIABLE: self._hub.address,
            KEY_VARIABLE: self._hub.key,
            PLACE_VARIABLE: place,
            CATALOGUE_VARIABLE: ",".join(self._catalogue),
        }
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._zygote = subprocess.Popen(
                [self._python, "-m", "harness.clusters.zygote"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + self._start_timeout_s
        while time.monotonic() < deadline:
            arrived = self._hub.wait_for(place, 0.05)
            if arrived is not None:
                self._channel = arrived[0]
                return
            if _has_ended(self._zygote):
                break
        ended = _has_ended(self._zygote)
        said = tail(self._log)
        zygote = self._zygote
        self.close()
        code = zygote.returncode if ended else None
        how = f"ended with status {code}" if code is not None else "did not answer"
        raise TargetDown(
            f"{self._python} {how} within {self._start_timeout_s:g} s when asked to import jax and "
            f"the clauses. Its last output:\n{said or '(none)'}\n"
            f"Run it by hand: {self._python} -c 'import jax'"
        )

    def start(self, settings: Sequence[Mapping[str, Any]]) -> LocalProcesses:
        """Fork one worker per settings, in order."""
        self.warm_up()
        pids = []
        for one in settings:
            self._send({"do": "spawn", "worker": dict(one)})
            pids.append(self._await_spawned(one["place"]))
        return LocalProcesses(self, pids, [Path(one["stacks"]) for one in settings])

    def close(self) -> None:
        """End the zygote and, with it, all that it forked."""
        channel, self._channel = self._channel, None
        zygote, self._zygote = self._zygote, None
        if zygote is None:
            return
        if channel is not None:
            channel.close()  # its end is the order to die
            deadline = time.monotonic() + KILL_S
            while not _has_ended(zygote) and time.monotonic() < deadline:
                time.sleep(0.002)
        # Unreaped, so the group is certainly its own; also ends what never became a zygote.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(zygote.pid, signal.SIGKILL)
        zygote.wait()

    def kill(self, pids: Sequence[int]) -> None:
        """Ask the zygote, which knows whether a pid is still its own."""
        self._send({"do": "kill", "pids": list(pids)})

    def dump_stacks(self, pids: Sequence[int]) -> None:
        """As `kill`, with the signal that makes a worker write its stacks."""
        self._send({"do": "dump stacks", "pids": list(pids)})

    def exits(self) -> dict[int, int]:
        """Exit status by pid of all workers that ended, in the order in which they ended."""
        while self._channel is not None and self._channel.waiting():
            self._note(self._receive())
        return dict(self._exits)

    def _await_spawned(self, place: str) -> int:
        while True:
            message = self._receive()
            if message.get("spawned") == place:
                pid = int(message["pid"])
                self._exits.pop(pid, None)  # of an earlier process with the same id
                return pid
            self._note(message)

    def _note(self, message: Mapping[str, Any]) -> None:
        if "exited" in message:
            self._exits[message["exited"]] = message["status"]

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._channel is None:
            raise self._gone()
        try:
            self._channel.send(message)
        except OSError as error:
            raise self._gone() from error

    def _receive(self) -> dict[str, Any]:
        if self._channel is None:
            raise self._gone()
        try:
            if not self._channel.waiting(KILL_S):
                raise EOFError
            return self._channel.receive()
        except (EOFError, Rubbish) as error:
            raise self._gone() from error

    def _gone(self) -> TargetDown:
        said = tail(self._log)
        self.close()
        return TargetDown(
            f"the zygote of {self._python} went away. Its last output:\n{said or '(none)'}"
        )


class LocalProcesses:
    """The workers of one cluster: `pids` in the order of their index."""

    def __init__(self, launcher: LocalLauncher, pids: list[int], stacks: list[Path]) -> None:
        self._launcher = launcher
        self.pids = pids
        self._stacks = stacks

    def exits(self) -> list[Exit]:
        """Those that have ended, the first to end first."""
        return [
            Exit(self.pids.index(pid), code)
            for pid, code in self._launcher.exits().items()
            if pid in self.pids
        ]

    def dump_stacks(self, processes: Sequence[int]) -> None:
        """Signal those that still run and have said where their stacks go."""
        ready = [p for p in processes if self._stacks[p].exists()]
        self._launcher.dump_stacks([self.pids[p] for p in ready])

    def kill(self, timeout_s: float = KILL_S) -> bool:
        """SIGKILL to every process group, then wait for every exit status."""
        deadline = time.monotonic() + timeout_s
        ended = {one.process for one in self.exits()}
        self._launcher.kill([p for i, p in enumerate(self.pids) if i not in ended])
        while len(self.exits()) < len(self.pids):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has; it stays unreaped, so that its id and its group's stay its own."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def tail(file: Path, size: int = TAIL_BYTES, start: int = 0) -> str:
    """The end of a text file, nothing of it before `start` bytes; empty where there is none."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(start, stream.tell() - size))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
