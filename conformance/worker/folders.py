"""Temporary folders that do not outlive the process that made them by more than a run.

A killed process removes nothing. Its folders name it as their owner, so that the next run on the
same host removes them. Whether the owner of another host's folder lives cannot be known here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

PREFIX = "conformance-"
OWNER = "owner.json"  # names the process that a folder belongs to

PROCESSES = Path("/proc")  # Linux alone; elsewhere a process is known by its id
_UNKNOWN = ""  # when a process started, where the system does not say
_STATE, _STARTED = 0, 19  # fields of a process's `stat`, behind its name
_ENDED = ("Z", "X")  # states of a process that nobody has asked for its status yet


class Scratch:
    """A new temporary folder of this process, until `close` or the end of a `with`."""

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        sweep(parent)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-", dir=parent))
        own(self.folder)

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def own(folder: Path) -> None:
    """Record this process as the owner of a folder."""
    (folder / OWNER).write_text(json.dumps(_owner(os.getpid())), encoding="utf-8")


def sweep(parent: Path | None = None) -> None:
    """Remove the folders whose owners ended without removing them; others stay."""
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        # What cannot be read belongs to another user, or has no owner yet.
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, OverflowError):
            if _has_ended(json.loads((folder / OWNER).read_text(encoding="utf-8"))):
                shutil.rmtree(folder, ignore_errors=True)


def _owner(pid: int) -> dict[str, Any]:
    """Return what identifies a process: containers may share a file system, but no process ids."""
    return {
        "host": os.uname().nodename,
        "namespace": _namespace(),
        "pid": pid,
        "started": _started(pid),
    }


def _has_ended(owner: dict[str, Any]) -> bool:
    now = _owner(owner["pid"])
    here = all(now[key] == owner[key] for key in ("host", "namespace"))
    return here and now["started"] not in (owner["started"], _UNKNOWN)


def _namespace() -> str:
    try:
        return str((PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """Return when a process started, as its system counts; None if there is no such process.

    Another process may have its id by now, with another start.
    """
    with contextlib.suppress(OSError):
        text = (PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return None if fields[_STATE] in _ENDED else fields[_STARTED]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:  # another user's
        pass
    return _UNKNOWN
