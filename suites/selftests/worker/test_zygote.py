"""The zygote's own processes: what they inherit from it, and what they must not."""

from __future__ import annotations

import subprocess
import sys

from processes import ENDS_S, outside_pytest

FORKED = """
import os, signal, time
from conformance.worker.descent import end_with_parent
end_with_parent(lambda: os._exit(7))
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGCONT)
    time.sleep(0)  # the interpreter runs the handler before this returns
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_worker_is_not_ended_by_a_signal_that_asks_the_zygote_for_its_parent() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        env=outside_pytest(),
        check=True,
    )
    assert ran.stdout == "3\n"
