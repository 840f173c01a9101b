"""Find the Python interpreters of this machine on which a target's environment can be built.

Each JAX version supports some Pythons only, and often not the controller's. A name on PATH proves
nothing (a pyenv shim exists for every version anyone installed, and most refuse to run), so every
candidate is run once and used only if it answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
PYTHON_RANGE = "{}.{} to {}.{}".format(*OLDEST_PYTHON, *NEWEST_PYTHON)
# Of a Python that only starts: on a machine with many processes per core that takes long as well.
PROBE_TIMEOUT_S = 60.0
LIST_TIMEOUT_S = 60.0
PROBES_AT_ONCE = 8

_NAMES = ("python3.11", "python3.12", "python3.13", "python3.14", "python3", "python")

# Only what Python 3 of any age understands: the answer must be an answer, not a syntax error.
_WHO_ARE_YOU = """
import json, sys
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:3]),
    "final": sys.version_info[3] == "final",
    "threaded": "t" in getattr(sys, "abiflags", ""),
    "base": getattr(sys, "_base_executable", None) or sys.executable,
}))
"""

_WHAT_HAVE_YOU = """
import importlib.metadata, json, platform, sys
packages = {}
for name in sys.argv[1:]:
    try:
        packages[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "python": platform.python_version(),
    "machine": platform.machine(),
    "packages": packages,
}))
"""


class NoAnswerError(Exception):
    """A file that did not behave as a Python interpreter when it was run."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A working Python: its real path (no shim, no virtual environment) and its version."""

    path: Path
    version: tuple[int, int, int]

    @property
    def minor(self) -> tuple[int, int]:
        """The version that packages depend on: (3, 11)."""
        return self.version[:2]

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.version))} ({self.path})"


@dataclass(frozen=True, slots=True)
class Facts:
    """Versions of a Python and of the requested packages; missing packages are left out.

    `python` is the full version as text; it may be longer than `version`, such as 3.13.0rc1.
    """

    version: tuple[int, ...]
    python: str
    machine: str
    packages: dict[str, str]


def facts(python: Path, names: Iterable[str]) -> Facts:
    """Read versions from the metadata of `python`'s packages, importing none of them.

    NoAnswerError if the file does not answer as a Python does.
    """
    answer = _ask(python, _WHAT_HAVE_YOU, *names)
    try:
        return Facts(
            tuple(answer["version"]),
            str(answer["python"]),
            str(answer["machine"]),
            dict(answer["packages"]),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise NoAnswerError(f"it answered {str(answer)[:80]}") from error


def _ask(python: Path, program: str, *arguments: str) -> dict[str, Any]:
    """Run a program that prints one JSON object with `python`, isolated from the environment.

    Isolated mode keeps the caller's PYTHON* variables, working directory and user site out of the
    answer, as they are kept out of a worker.
    """
    command = [str(python), "-I", "-c", program, *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(f"no answer within {PROBE_TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise NoAnswerError(error.strerror or str(error)) from error
    if done.returncode != 0:
        output = done.stderr.strip().splitlines()
        raise NoAnswerError(
            f"exit status {done.returncode}" + (f": {output[-1]}" if output else "")
        )
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise NoAnswerError(f"it printed {done.stdout[:80]!r}") from error
    if not isinstance(answer, dict):
        raise NoAnswerError(f"it printed {done.stdout[:80]!r}")
    return answer


def in_range(version: tuple[int, ...]) -> bool:
    """Return whether workers can run on this Python version."""
    return OLDEST_PYTHON <= version[:2] <= NEWEST_PYTHON


def own_interpreter() -> Path:
    """Return the interpreter below the controller's own, possibly virtual, environment."""
    base: str | None = getattr(sys, "_base_executable", None)
    return Path(base or sys.executable)


def own_version() -> tuple[int, int, int]:
    """Return the version of the controller's Python."""
    return sys.version_info[:3]


def find(environ: Mapping[str, str] | None = None, *, uv: Path | None = None) -> list[Interpreter]:
    """Return one interpreter for each usable minor version: the controller's own first, then the
    newest.

    Of several with one minor version the controller's own wins, then the highest patch: the order
    of PATH changes from shell to shell, and each change would rebuild every environment.
    """
    environ = os.environ if environ is None else environ
    candidates = list(dict.fromkeys(_candidates(environ, uv)))
    with ThreadPoolExecutor(PROBES_AT_ONCE) as pool:
        answers = list(pool.map(_probe, candidates))
    own = own_interpreter().resolve()
    best: dict[tuple[int, int], Interpreter] = {}
    for found in answers:
        if found is None:
            continue
        known = best.get(found.minor)
        if known is None or _rank(found, own) > _rank(known, own):
            best[found.minor] = found
    return sorted(best.values(), key=lambda one: (one.path == own, one.version), reverse=True)


def _rank(interpreter: Interpreter, own: Path) -> tuple[bool, tuple[int, int, int]]:
    return interpreter.path == own, interpreter.version


def _candidates(environ: Mapping[str, str], uv: Path | None) -> Iterator[Path]:
    """Yield files that may be interpreters, most trusted first."""
    yield own_interpreter().resolve()
    for folder in environ.get("PATH", "").split(os.pathsep):
        for name in _NAMES:
            path = Path(folder) / name
            if folder and os.access(path, os.X_OK):
                yield _real(path)
    yield from _pyenv(environ)
    if uv is not None:
        yield from _known_to_uv(environ, uv)


def _pyenv(environ: Mapping[str, str]) -> Iterator[Path]:
    home = environ.get("HOME")
    root = environ.get("PYENV_ROOT") or (os.path.join(home, ".pyenv") if home else None)
    if root:
        for path in sorted(Path(root).glob("versions/*/bin/python")):
            yield _real(path)


def _known_to_uv(environ: Mapping[str, str], uv: Path) -> Iterator[Path]:
    # PATH has been looked at: with it, uv would run each refusing shim a second time.
    own_rules = {
        "PATH": os.devnull,
        "UV_PYTHON_PREFERENCE": "only-managed",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    command = [str(uv), "python", "list", "--only-installed", "--offline"]
    try:
        done = subprocess.run(
            [*command, "--output-format", "json"],
            env={**environ, **own_rules},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIST_TIMEOUT_S,
            check=True,
        )
        for entry in json.loads(done.stdout):
            yield _real(Path(entry["path"]))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        # uv is one place of several to look at; without its list the others still count.
        return


def _real(path: Path) -> Path:
    """Return the interpreter behind a link; a link to a version manager's shim is returned
    unchanged.
    """
    # Such a shim decides by the name it was called with which Python it runs.
    target = path.resolve()
    return target if target.name.startswith("python") else path


def _probe(candidate: Path) -> Interpreter | None:
    try:
        answer = _ask(candidate, _WHO_ARE_YOU)
        major, minor, patch = answer["version"]
        usable = (
            answer["implementation"] == "cpython" and answer["final"] and not answer["threaded"]
        )
        version = (int(major), int(minor), int(patch))
        path = Path(answer["base"]).resolve()
    except (NoAnswerError, LookupError, TypeError, ValueError):
        return None
    return Interpreter(path, version) if usable and in_range(version) else None
