"""Start the agents of all hosts with the commands of one launcher, and end them.

A launcher is a small module of pure functions that return those commands; each starts the agent,
`python -m conformance.worker.agent` or that of `launch`, and nothing else. The key is
passed by a variable or on standard input, because every user of a host can read arguments.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.worker.agent import PLACE
from conformance.worker.channel import KEY_VARIABLE
from conformance.worker.deadlines import KILL_S
from conformance.worker.output import tail
from harness.clusters.launchers import TargetDown

AGENT = "conformance.worker.agent"
ENDS_BY_ITSELF_S = 3.0  # once its agents have lost their controller


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start: `hosts` agents of `python`, which connect to `controller` as `place`.

    `variables` are those that Python needs to find the project on each host; `names` may be empty
    if the launcher knows its hosts. `module` is the agent.
    """

    hosts: int
    controller: str
    python: str
    names: tuple[str, ...] = ()
    place: str = PLACE
    variables: Mapping[str, str] = field(default_factory=dict)
    module: str = AGENT

    @property
    def agent(self) -> list[str]:
        """Return the command of one agent, without its rank."""
        words = [self.python, "-m", self.module, "--controller", self.controller]
        return words if self.place == PLACE else [*words, "--place", self.place]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that starts one agent or all; if `key_on_stdin`, its first input line is
    the key. `host` is that of its one agent, if it starts one on a named host.
    """

    words: tuple[str, ...]
    key_on_stdin: bool = False
    host: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """A launcher of agents: its `program`, and the `package` that installs it.

    `unreachable` is the exit status with which the program says that it did not reach a host.
    """

    key: str
    text: str
    program: str
    package: str
    commands: Callable[[Plan], list[Command]]
    unreachable: int | None = None


class WayStarter:
    """Runs the commands of `way` with `environment`; their output goes to files in `folder`."""

    def __init__(
        self, way: Way, plan: Plan, environment: Mapping[str, str], key: str, folder: Path
    ) -> None:
        self._way = way
        self._plan = plan
        self._environment = {**environment, **plan.variables, KEY_VARIABLE: key}
        self._key = key
        self._folder = folder
        self._running: list[tuple[subprocess.Popen[bytes], Path, Command]] = []

    def start(self) -> None:
        """Run all commands; TargetDown if the program is not installed or the plan is invalid."""
        path = self._environment.get("PATH")
        program = shutil.which(self._way.program, path=path)
        if program is None:
            raise TargetDown(
                f"--launcher {self._way.key}: there is no {self._way.program} on this machine's "
                f"PATH; it comes with {self._way.package}"
            )
        try:
            commands = self._way.commands(self._plan)
        except ValueError as error:
            raise TargetDown(f"--launcher {self._way.key}: {error}") from error
        self._folder.mkdir(parents=True, exist_ok=True)
        for number, command in enumerate(commands):
            log = self._folder / f"{self._way.key}-{number}.log"
            process = self._run([program, *command.words[1:]], command, log)
            self._running.append((process, log, command))

    def ended(self) -> str | None:
        """Return how the first command that ended did so, with the end of its output, and which
        host it did not reach.
        """
        for process, log, command in self._running:
            code = process.poll()
            if code is not None:
                return self._fate(command, code, tail(log).strip() or "(nothing)")
        return None

    def _fate(self, command: Command, code: int, output: str) -> str:
        program = self._way.program
        fate = f"{program} ended with status {code}, and said: {output}"
        if not command.host:
            return fate
        if code != self._way.unreachable:
            return f"the agent on host {command.host} did not start: {fate}"
        return (
            f"host {command.host} could not be reached: {fate}. Check its name, and that "
            f"`{program} {command.host} true` works from here without a password"
        )

    def close(self) -> None:
        """End the commands, by force if they do not end by themselves."""
        deadline = time.monotonic() + ENDS_BY_ITSELF_S
        for process, *_ in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for process, *_ in self._running:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + KILL_S
        for process, *_ in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if process.poll() is None:
                # Unreaped, so the group is certainly its own.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._running.clear()

    def _run(self, words: list[str], command: Command, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as stream:
            process = subprocess.Popen(
                words,
                env=self._environment,
                stdin=subprocess.PIPE if command.key_on_stdin else subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(f"{self._key}\n".encode())
        return process
