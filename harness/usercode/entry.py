"""Run a user's script as `python SCRIPT` would, and note how it ends.

Started as a file, `python entry.py SCRIPT ARG ...`, by the target's Python, without this project on
its path: it imports only the standard library. The notes are JSON lines in a pipe to the command
that started it.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import faulthandler
import json
import os
import runpy
import signal
import sys
import time
import types
from pathlib import Path
from typing import Any

SETTINGS_VARIABLE = "PMAP_CONFORMANCE_LAUNCHED"
MOST_MESSAGE = 2000  # characters of an exception's message in a note
_PR_SET_PDEATHSIG = 1
_INSTALLED = ("site-packages", "dist-packages")


def main() -> None:
    """Run the script that the arguments name; its exit status is this process's."""
    settings = json.loads(os.environ.pop(SETTINGS_VARIABLE))
    _end_with(settings["parent"])
    notes = settings["notes"]
    os.set_inheritable(notes, False)  # a process that the script starts must not keep it open
    stacks = open(settings["stacks"], "w")  # noqa: SIM115  (open for the process's life)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    sys.argv[:] = sys.argv[1:]
    try:
        _run(sys.argv[0], settings["module"])
    except SystemExit as ending:
        _note(notes, {"exit": _status(ending.code)})
        raise
    except BaseException as error:
        _note(notes, {"exit": 1, **_raised(error)})
        error.__traceback__ = _below(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None
    _note(notes, {"exit": 0})


def _run(name: str, module: bool) -> None:
    """Execute a script or module as `__main__`."""
    if module:
        sys.path[0:1] = [os.getcwd()]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(name).resolve().parent)
    file = str(Path(name).absolute())
    code = compile(Path(name).read_bytes(), file, "exec")
    script = types.ModuleType("__main__")
    script.__dict__.update(__file__=file, __builtins__=builtins)
    sys.modules["__main__"] = script  # what pickles and starts processes looks there
    exec(code, script.__dict__)


def _end_with(parent: int) -> None:
    """Have the kernel end this process when the command that started it is killed."""
    # Linux alone has this.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def _note(notes: int, record: dict[str, Any]) -> None:
    """Write a note; whoever read it may be gone."""
    line = json.dumps({**record, "at": time.monotonic(), **_facts()}) + "\n"
    with contextlib.suppress(OSError):
        os.write(notes, line.encode())


def _facts() -> dict[str, Any]:
    """Return the JAX that was imported, and the size of its job; initialise nothing."""
    jax = sys.modules.get("jax")
    distributed = sys.modules.get("jax._src.distributed")
    state = getattr(distributed, "global_state", None)
    joined = getattr(state, "client", None) is not None
    return {
        "jax": getattr(jax, "__version__", None),
        "processes": getattr(state, "num_processes", None) if joined else None,
    }


def _status(code: Any) -> int:
    """Return the exit status of `sys.exit(code)`."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _raised(error: BaseException) -> dict[str, str]:
    """Return type and message of an exception, and the innermost line that is the user's own."""
    where = ""
    here = _below(error.__traceback__)
    while here is not None:
        code = here.tb_frame.f_code
        own = code.co_filename.startswith("<") or not _is_installed(code.co_filename)
        if own or not where:
            where = f"{code.co_filename}:{here.tb_lineno} in {code.co_name}"
        here = here.tb_next
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}"
    return {
        "raised": type(error).__name__,
        "message": str(error)[:MOST_MESSAGE],
        "where": where,
    }


def _is_installed(file: str) -> bool:
    """Return whether a file belongs to a library or to Python."""
    parts = Path(file).parts
    return file.startswith(sys.base_prefix) or any(one in parts for one in _INSTALLED)


def _below(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the frames of this file and of `runpy`."""
    ours = (__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib._bootstrap>")
    while trace is not None and trace.tb_next is not None:
        if trace.tb_frame.f_code.co_filename not in ours:
            break
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    main()
