"""A test process of `-n` that dies before xdist knows it: another is started in its place.

xdist replaces a test process that dies once it has been set up. One that dies while it is set up
(its interpreter starts, or is asked what it is) ends the run with a traceback instead. xdist has no
hook there; the one place through which it starts every test process is its manager's `setup_node`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MOST_IN_A_ROW = 4  # more than that die of something that will not go away


class Starter:
    """Stands in for a manager's `setup_node`: asks it once more where the process dies meanwhile.

    `died` is told the name of each that did, as nothing else of the run hears of it.
    """

    def __init__(self, manager: Any, attempts: int, died: Callable[[str, str], None]) -> None:
        self._setup = manager.setup_node
        self._group = manager.group
        self._attempts = attempts
        self._died = died

    def __call__(self, spec: Any, putevent: Callable[[Any], None]) -> Any:
        """The test process, ready to be told what to run; ends the run where none stays alive."""
        for attempt in range(1, self._attempts + 1):
            try:
                return self._setup(spec, putevent)
            except (EOFError, OSError) as error:
                name = spec.id
                self._forget(name)
                self._died(name, f"{error}; attempt {attempt} of {self._attempts}")
                spec.id = None  # a dead one's name is not given again
                self._group.allocate_id(spec)
        raise pytest.exit.Exception(
            f"test processes of -n do not start: of {self._attempts} tried for one place, each "
            "died before it said a word. What a process says as it dies stands above; where "
            "nothing does, look whether memory ran out (dmesg), and give a smaller -n",
            returncode=pytest.ExitCode.TESTS_FAILED,
        )

    def _forget(self, name: str) -> None:
        if name in self._group:
            self._group[name].exit()


def watch(config: pytest.Config, died: Callable[[str, str], None]) -> None:
    """Let xdist's manager start test processes by a `Starter`; it asks before it starts the first.

    `--max-worker-restart 0` means here, too, that none is replaced.
    """
    manager = config.pluginmanager.getplugin("dsession").nodemanager
    restarts = config.getoption("maxworkerrestart")
    attempts = MOST_IN_A_ROW if restarts is None else min(MOST_IN_A_ROW, 1 + int(restarts))
    manager.setup_node = Starter(manager, attempts, died)
