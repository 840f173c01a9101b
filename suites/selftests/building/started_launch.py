"""`launch` of a script in a process of its own, on one machine or several hosts."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import ENDS_S, HANGS_S, MARK, end, gone, new_mark, outside_pytest

import harness

ROOT = Path(harness.__file__).parents[1]


@contextmanager
def launching(
    folder: Path, script: str, *words: str
) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """`launch` of a script in `folder`, its mark, and the file that takes its output."""
    (folder / "script.py").write_text(script)
    mark, log = new_mark(), folder / "output.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.commandline", "launch", "script.py", *words],
            cwd=folder,
            env={**outside_pytest(), "PYTHONPATH": str(ROOT), MARK: mark},
            stdout=stream,
            stderr=stream,
            text=True,
            # A job in the background is started with SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        yield process, mark, log
    finally:
        process.kill()
        process.wait()
        end(mark)


def launch(folder: Path, script: str, *words: str) -> tuple[int, str]:
    """Exit status and output of a launch that ends; nothing of it is left."""
    with launching(folder, script, *words) as (process, mark, log):
        status = process.wait(HANGS_S)
        assert gone(mark, ENDS_S), log.read_text()
        return status, log.read_text()
