"""Workers on this machine, forked from one zygote per target."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.channel import ADDRESS_VARIABLE, KEY_VARIABLE, Channel, Rubbish
from harness.deadlines import KILL_S, ZYGOTE_START_S
from harness.hub import Hub
from harness.launchers import Exit, TargetDown
from harness.zygote import CATALOGUE_VARIABLE, PLACE_VARIABLE

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
        self._order: list[int] = []

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
                [self._python, "-m", "harness.zygote"],
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
            if self._zygote.poll() is not None:
                break
        code = self._zygote.poll()
        said = tail(self._log)
        self.close()
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
        if self._channel is not None:
            self._channel.close()  # its end is the order to die
            self._channel = None
        zygote, self._zygote = self._zygote, None
        if zygote is None:
            return
        try:
            zygote.wait(KILL_S)
        except subprocess.TimeoutExpired:
            zygote.kill()
            zygote.wait()

    def kill(self, pids: Sequence[int]) -> None:
        """Ask the zygote, which knows whether a pid is still its own."""
        self._send({"do": "kill", "pids": list(pids)})

    def exits(self) -> dict[int, int]:
        """Exit status by pid of all workers that ended, in the order in which they ended."""
        while self._channel is not None and self._channel.waiting():
            self._note(self._receive())
        return {pid: self._exits[pid] for pid in self._order}

    def _await_spawned(self, place: str) -> int:
        while True:
            message = self._receive()
            if message.get("spawned") == place:
                return int(message["pid"])
            self._note(message)

    def _note(self, message: Mapping[str, Any]) -> None:
        if "exited" in message:
            self._exits[message["exited"]] = message["status"]
            self._order.append(message["exited"])

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            assert self._channel is not None
            self._channel.send(message)
        except OSError as error:
            raise self._gone() from error

    def _receive(self) -> dict[str, Any]:
        try:
            assert self._channel is not None
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
        ended = {one.process for one in self.exits()}
        for process in processes:
            if process not in ended and self._stacks[process].exists():
                os.kill(self.pids[process], signal.SIGUSR1)

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


def tail(file: Path, size: int = TAIL_BYTES, start: int = 0) -> str:
    """The end of a text file, nothing of it before `start` bytes; empty where there is none."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(start, stream.tell() - size))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
