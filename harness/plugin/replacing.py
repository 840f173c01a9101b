"""Replace a test process of `-n` that dies before xdist knows it.

xdist replaces a test process that dies after it has been set up. If one dies during set-up, the run
would end with a traceback. xdist has no hook there; it starts every test process through its
manager's `setup_node`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MOST_IN_A_ROW = 4  # more than that die of something that will not go away


class Starter:
    """Wraps a manager's `setup_node` and calls it again if the process dies meanwhile.

    `died` receives the name of each such process, of which the run learns nothing otherwise.
    """

    def __init__(self, manager: Any, attempts: int, died: Callable[[str, str], None]) -> None:
        self._setup = manager.setup_node
        self._group = manager.group
        self._attempts = attempts
        self._died = died

    def __call__(self, spec: Any, putevent: Callable[[Any], None]) -> Any:
        """Return a test process that is ready for work; end the run if none stays alive."""
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
    """Make xdist's manager start test processes through a `Starter`.

    `--max-worker-restart 0` means here, too, that none is replaced.
    """
    manager = config.pluginmanager.getplugin("dsession").nodemanager
    restarts = config.getoption("maxworkerrestart")
    attempts = MOST_IN_A_ROW if restarts is None else min(MOST_IN_A_ROW, 1 + int(restarts))
    manager.setup_node = Starter(manager, attempts, died)
