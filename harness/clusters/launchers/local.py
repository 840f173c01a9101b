"""Workers on this machine, forked from one zygote per target."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.worker import machine
from conformance.worker.channel import ADDRESS_VARIABLE, KEY_VARIABLE
from conformance.worker.deadlines import KILL_S, ZYGOTE_START_S
from conformance.worker.output import Evidence, Output, await_stacks, tail
from conformance.worker.ports import ReservedPort
from conformance.worker.starving import Delays, delays
from conformance.worker.zygote import CATALOGUE_VARIABLE, PLACE_VARIABLE
from harness.clusters.hub import Hub
from harness.clusters.launchers import Exit, TargetDown
from harness.clusters.launchers.host import GONE, Host, HostGone


class LocalLauncher:
    """One zygote of `python`, started on the first request, and the workers forked from it.

    Several threads may own clusters of it; they take turns in talking to the zygote.
    """

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
        self._folder = folder
        self._log = folder / "zygote.log"
        self._catalogue = catalogue
        self._start_timeout_s = start_timeout_s
        self._zygote: subprocess.Popen[bytes] | None = None
        self._host: Host | None = None
        self._lock = threading.RLock()
        self._clusters = 0

    @property
    def idle(self) -> bool:
        """Return whether it has no open cluster."""
        return self._clusters == 0

    def begin(self) -> None:
        """Start the zygote unless it runs, without waiting for it."""
        with self._lock:
            if self._zygote is None:
                self._start_zygote()

    def warm_up(self) -> None:
        """Start the zygote unless it runs, and wait until it can fork; TargetDown if it fails."""
        with self._lock:
            if self._host is None:
                self.begin()
                self._await_zygote()

    @property
    def _place(self) -> str:
        """The name by which the zygote connects."""
        return f"zygote-{os.getpid()}-{id(self)}"

    def _start_zygote(self) -> None:
        environment = {
            **self._environment,
            ADDRESS_VARIABLE: self._hub.address,
            KEY_VARIABLE: self._hub.key,
            PLACE_VARIABLE: self._place,
            CATALOGUE_VARIABLE: ",".join(self._catalogue),
        }
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._zygote = subprocess.Popen(
                [self._python, "-m", "conformance.worker.zygote"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await_zygote(self) -> None:
        zygote = self._zygote
        assert zygote is not None
        deadline = time.monotonic() + self._start_timeout_s
        while time.monotonic() < deadline:
            arrived = self._hub.wait_for(self._place, 0.05)
            if arrived is not None:
                self._host = Host(arrived[0])
                return
            if _has_ended(zygote):
                break
        ended = _has_ended(zygote)
        output = tail(self._log)
        self.close()
        code = zygote.returncode if ended else None
        how = f"ended with status {code}" if code is not None else "did not answer"
        raise TargetDown(
            f"{self._python} {how} within {self._start_timeout_s:g} s when asked to import jax and "
            f"the clauses. Its last output:\n{output or '(none)'}\n"
            f"Run it by hand: {self._python} -c 'import jax'"
        )

    def devices(self, platform: str) -> list[tuple[str, ...]]:
        """Return the ids of this machine's devices."""
        return [machine.devices(platform, self._environment)]

    def reserve(self) -> ReservedPort:
        """Reserve a port of this machine."""
        return ReservedPort()

    def start(self, settings: Sequence[Mapping[str, Any]]) -> LocalProcesses:
        """Fork one worker per settings, in order."""
        self.warm_up()
        folder = self._folder / f"cluster-{secrets.token_hex(4)}"
        folder.mkdir(parents=True)
        try:
            whole = [
                {
                    "address": self._hub.address,
                    "key": self._hub.key,
                    "log": str(folder / f"process-{one['process']}.log"),
                    "stacks": str(folder / f"process-{one['process']}.stacks"),
                    "temporary": str(folder),
                    **one,
                }
                for one in settings
            ]
            with self.asked() as host:
                pids = [host.answer(host.ask("spawn", worker=one))["pid"] for one in whole]
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        outputs = [Output(Path(one["log"]), Path(one["stacks"])) for one in whole]
        self.count(1)
        return LocalProcesses(self, [one["place"] for one in whole], pids, outputs, folder)

    def count(self, more: int) -> None:
        """Count clusters that were opened, or closed if negative."""
        with self._lock:
            self._clusters += more

    def close(self) -> None:
        """End the zygote and all that it forked."""
        with self._lock:
            self._end_zygote()

    def _end_zygote(self) -> None:
        host, self._host = self._host, None
        zygote, self._zygote = self._zygote, None
        if zygote is None:
            return
        if host is not None:
            host.close()
            deadline = time.monotonic() + KILL_S
            while not _has_ended(zygote) and time.monotonic() < deadline:
                time.sleep(0.002)
        # Unreaped, so the group is certainly its own; also ends what never became a zygote.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(zygote.pid, signal.SIGKILL)
        zygote.wait()

    @contextlib.contextmanager
    def asked(self) -> Iterator[Host]:
        """Yield the zygote for a request; TargetDown if it is lost."""
        try:
            with self._lock:
                if self._host is None:
                    raise HostGone(GONE)
                yield self._host
        except HostGone as error:
            output = tail(self._log)
            self.close()
            raise TargetDown(
                f"the zygote of {self._python} {str(error).removeprefix('it ')}. Its last output:\n"
                f"{output or '(none)'}"
            ) from error


class LocalProcesses:
    """The workers of one cluster, by place and pid, ordered by index.

    Their files are read here, so that they can be read even if the zygote is lost.
    """

    def __init__(
        self,
        launcher: LocalLauncher,
        places: list[str],
        pids: list[int],
        outputs: list[Output],
        folder: Path,
    ) -> None:
        self.pids = pids
        self._launcher = launcher
        self._places = places
        self._outputs = outputs
        self._folder = folder
        self._lost = False
        self._open = True

    def exits(self) -> list[Exit]:
        """Return the processes that have ended, in the order in which they ended."""
        try:
            with self._launcher.asked() as zygote:
                ended = zygote.exits()
        except TargetDown:
            self._lost = True
            raise
        places = self._places
        return [Exit(places.index(p), code) for p, code in ended.items() if p in places]

    def mark(self) -> None:
        """Mark the start of a case: what the files hold so far belongs to earlier cases."""
        for one in self._outputs:
            one.mark()

    def written(self) -> list[int]:
        """Return the bytes written by each process, from the sizes of the files."""
        return [one.written() for one in self._outputs]

    def delays(self) -> list[Delays]:
        """Return each thread's time without a core, as this machine's kernel counts it."""
        return [delays(pid) for pid in self.pids]

    def evidence(self, running: Sequence[int]) -> list[Evidence]:
        """Return the contents of the files, once running processes have written their stacks."""
        if running and not self._lost:
            with self._launcher.asked() as zygote:
                zygote.tell("dump stacks", places=[self._places[p] for p in running])
            await_stacks([self._outputs[p] for p in running])
        return [one.evidence() for one in self._outputs]

    def lost(self) -> Mapping[int, str]:
        """Return every process if the zygote is lost, else none."""
        return {p: "ended with its zygote" for p in range(len(self.pids)) if self._lost}

    def host(self, process: int) -> str:
        """Return the empty name, which stands for this machine."""
        return ""

    def kill(self, timeout_s: float = KILL_S) -> bool:
        """Kill every process group, wait for every exit status, and remove the files."""
        try:
            deadline = time.monotonic() + timeout_s
            with self._launcher.asked() as zygote:
                zygote.tell("kill", places=self._places)
            while len(self.exits()) < len(self._places):
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.001)
            with self._launcher.asked() as zygote:
                zygote.forget(*self._places)
            return True
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            if self._open:
                self._open = False
                self._launcher.count(-1)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended; it stays unreaped, so that its id is not reused."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
