"""The temporary folder of one test process, and the removal of abandoned ones.

A killed process removes nothing. Its folder is recognised by a lock that ended with it, so the next
test process of this machine removes it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

PREFIX = "conformance-run-"
LOCK = "owner.lock"


class Scratch:
    """A new folder, until `close` or the end of this process."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        sweep(parent)
        # Under another name until it is locked: a folder without a lock is nobody's.
        made = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}", dir=parent))
        self.folder = parent / made.name.removeprefix("new-")
        self._lock = FileLock(made / LOCK)
        self._lock.acquire()
        made.rename(self.folder)

    def close(self) -> None:
        """Remove the folder."""
        self._lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)


def sweep(parent: Path | None = None) -> None:
    """Remove the folders whose owners ended without removing them."""
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        lock = FileLock(folder / LOCK, timeout=0)
        try:
            if not (folder / LOCK).exists():
                continue
            lock.acquire()
        except (Timeout, OSError):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
