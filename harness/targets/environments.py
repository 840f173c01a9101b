"""Build an environment for each JAX version with uv, once, and cache it for later runs.

The versions of one matrix cannot share an environment. Building needs a network and a minute, so a
finished environment has a marker, written last; an environment with a marker is used without
starting uv, and one without was interrupted and is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock
import uv as uv_package
from packaging.version import Version

from harness.targets import interpreters, nightly
from harness.targets.interpreters import (
    NEWEST_PYTHON,
    OLDEST_PYTHON,
    PYTHON_RANGE,
    Interpreter,
    NoAnswerError,
)

RESOLVE_TIMEOUT_S = 120.0
INSTALL_TIMEOUT_S = 900.0
# Another process may have to try every minor version of Python before it is done.
LOCK_TIMEOUT_S = (NEWEST_PYTHON[1] - OLDEST_PYTHON[1] + 1) * INSTALL_TIMEOUT_S + 60.0

MARKER = "provisioned.json"
# uv's own 3 take most of 10 s to say that there is no network.
HTTP_RETRIES = "1"

Progress = Callable[[str], None]

# Settings of the shell that would turn uv to another environment than the one named to it.
_NOT_FOR_UV = frozenset({"UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX", "VIRTUAL_ENV"})
_FOR_UV = {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}

# uv has no exit status or machine-readable output that tells these apart, only its words.
_UNREACHABLE = re.compile(
    r"failed to (fetch|download)|request failed|error sending request|dns error|timed out|"
    r"network was disabled|not found in the cache|\bjax was not found in the package registry",
    re.IGNORECASE,
)
_DEPENDS_ON_PYTHON = re.compile(r"current Python version|Python\s?[<>=!~]|has no wheels|\btag\b")
_NEEDS_PYTHON = re.compile(r"\bjax\S* depends on (Python[^\s,]+(?:,[<>=!~][^\s,]+)*)")
_NO_SUCH_VERSION = r"no version of jax=={}(?![.\d])"


class TargetError(Exception):
    """A target that is not available: what happened, to what, and what to do."""


@dataclass(frozen=True, slots=True)
class Built:
    """A finished environment: its folder, and the specification in its marker."""

    folder: Path
    version: str
    extras: tuple[str, ...]
    minor: tuple[int, int]

    @property
    def python(self) -> Path:
        """The interpreter of this environment."""
        return self.folder / "bin" / "python"


def provide(
    version: str,
    extras: tuple[str, ...],
    targets: Path,
    *,
    progress: Progress,
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> Path:
    """Return the Python of the environment with this JAX and these extras, building it if needed.

    TargetError if no Python of this machine can have it, or it cannot be installed.
    """
    if built := _reusable(version, extras, targets):
        return built.python
    targets.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(targets / f".jax-{version}-{_hash(version, *extras)}.lock")
    try:
        if not _locked_at_once(lock):
            progress(f"waiting for another process that is installing {_title(version, extras)}")
            lock.acquire(timeout=LOCK_TIMEOUT_S)
    except filelock.Timeout as error:
        raise TargetError(
            f"Another process has been installing {_title(version, extras)} for "
            f"{LOCK_TIMEOUT_S:.0f} s: end it, then run again."
        ) from error
    try:
        # What this process waited for may be what it needs.
        built = _reusable(version, extras, targets)
        if built is None:
            uv = _uv() if uv is None else uv
            built = _build(version, extras, targets, progress, uv, _some(pythons, uv))
        return built.python
    finally:
        lock.release()


def newest(
    extras: tuple[str, ...],
    targets: Path,
    *,
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> str:
    """Return the newest stable JAX for the newest Python; the cache's newest if no index answers.

    TargetError if the cache has none either.
    """
    wanted, stable = ["jax", *extras], ["--prerelease", "disallow"]
    python, version, message = _resolved(wanted, stable, targets, uv, pythons)
    if version is not None:
        return version
    if not _UNREACHABLE.search(message):
        raise TargetError(f"The newest JAX for Python {python} could not be found: {message}")
    built = [one.version for one in usable(targets) if one.extras == extras]
    kept = [one for one in built if not nightly.is_nightly(one)]
    if not kept:
        raise _no_index("newest", targets, message)
    return max(kept, key=Version)


def newest_nightly(
    extras: tuple[str, ...],
    targets: Path,
    *,
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> str:
    """Return the newest nightly wheel of JAX for the newest Python.

    A cached nightly never replaces it: it would be of another night. TargetError if the index of
    nightly wheels does not answer.
    """
    wanted = [*nightly.ANY, *extras]
    python, version, message = _resolved(wanted, nightly.options(), targets, uv, pythons)
    if version is not None and nightly.is_nightly(version):
        return version
    if version is not None:
        raise TargetError(
            f"{nightly.index()} has no nightly JAX for Python {python}, only jax=={version}: name "
            f"an index that has, with {nightly.INDEX_VARIABLE}"
        )
    kept = sorted({one.version for one in usable(targets)}, key=Version)
    instead = ", ".join(f"jax=={v}" for v in kept if nightly.is_nightly(v)) or "none yet"
    raise TargetError(
        f"no nightly JAX could be installed for Python {python}: JAX's nightly wheels are at "
        f"{nightly.index()}, which must be reached: connect, name a mirror with "
        f"{nightly.INDEX_VARIABLE}, or ask for a cached night: {instead}. (uv: {message})"
    )


def releases(
    first: str,
    last: str,
    targets: Path,
    *,
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> list[str]:
    """Return the stable releases of JAX from `first` to `last` on the index, oldest first.

    The installer has no list, so the index is asked repeatedly for the oldest release after the
    previous one. Both ends are included, installable or not. TargetError if no index answers.
    """
    options = ["--prerelease", "disallow", "--resolution", "lowest-direct", "--no-deps"]
    uv = _uv() if uv is None else uv
    pythons = _some(pythons, uv)  # once: each of them is started to find it
    found = [first]
    while Version(found[-1]) < Version(last):
        after = f"jax>{found[-1]},<{last}"
        python, version, message = _resolved([after], options, targets, uv, pythons)
        if version is None and _UNREACHABLE.search(message):
            raise _no_index(f"The list of releases of JAX for Python {python}", targets, message)
        found.append(version if version is not None else last)
    return found


def nights(
    first: str,
    last: str,
    targets: Path,
    *,
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> list[str]:
    """Return JAX's nightly wheels between two releases that their index has, oldest first.

    TargetError where no index answers.
    """
    options = [*nightly.options(), "--resolution", "lowest-direct", "--no-deps"]
    uv = _uv() if uv is None else uv
    pythons = _some(pythons, uv)
    found: list[str] = []
    newest: str | None = first
    while newest is not None:
        # Without a development version as its end a range has none of the release at the end.
        after = f"jax>{newest},<{last}.dev{nightly.FAR_OFF}"
        _, newest, message = _resolved([after], options, targets, uv, pythons)
        if newest is None and _UNREACHABLE.search(message):
            raise TargetError(
                f"The nightly wheels of JAX between {first} and {last} could not be listed: "
                f"{nightly.index()} must be reached: connect, or name a mirror with "
                f"{nightly.INDEX_VARIABLE}. (uv: {message})"
            )
        if newest is not None and nightly.is_nightly(newest):
            found.append(newest)
    return found


def _resolved(
    wanted: Sequence[str],
    options: Sequence[str],
    targets: Path,
    uv: Path | None,
    pythons: Sequence[Interpreter] | None,
) -> tuple[Interpreter, str | None, str]:
    """Return the newest Python and the jax that uv resolves for it, else None and uv's message."""
    uv = _uv() if uv is None else uv
    python = max(_some(pythons, uv), key=lambda one: one.version)
    # With its dependencies: a jax whose jaxlib has no wheel for this machine does not count.
    ask = ["pip", "compile", "-", "--no-header", "--no-annotate", *options]
    command: list[str | Path] = [uv, *ask, "--python", python.path]
    done = _run(command, RESOLVE_TIMEOUT_S, folder=targets, stdin="\n".join(wanted))
    found = re.search(r"^jax==(\S+)", done.stdout, re.MULTILINE)
    if done.returncode == 0 and found:
        return python, found[1], ""
    return python, None, _uv_message(done)


def usable(targets: Path) -> list[Built]:
    """Return the finished environments whose files include a Python, their jax and a jaxlib.

    No Python is started, so that many are listed at once; one is started before it is used.
    """
    return [one for one in _finished(targets) if _is_whole(one)]


def _is_whole(built: Built) -> bool:
    packages = built.folder.glob("lib/python*/site-packages/jax*-*.dist-info")
    found = dict(one.name.removesuffix(".dist-info").split("-", 1) for one in packages)
    return (
        os.access(built.python, os.X_OK)
        and "jaxlib" in found
        and Version(found.get("jax", "0")) == Version(built.version)
    )


def _reusable(version: str, extras: tuple[str, ...], targets: Path) -> Built | None:
    own = interpreters.own_version()[:2]
    same = [one for one in _finished(targets) if (one.version, one.extras) == (version, extras)]
    same.sort(key=lambda one: (one.minor == own, one.minor), reverse=True)
    return next(filter(_works, same), None)


def _finished(targets: Path) -> Iterator[Built]:
    for path in sorted(targets.glob(f"jax-*/{MARKER}")):
        try:
            marker = json.loads(path.read_text("utf-8"))
            major, minor = marker["minor"]
            extras = tuple(marker["extras"])
            yield Built(path.parent, marker["version"], extras, (int(major), int(minor)))
        except (OSError, ValueError, LookupError, TypeError):
            continue


def _works(built: Built) -> bool:
    try:
        known = interpreters.facts(built.python, ("jax", "jaxlib"))
    except NoAnswerError:
        return False
    found = known.packages.get("jax")
    return (
        found is not None
        and Version(found) == Version(built.version)
        and ("jaxlib" in known.packages)
    )


def _build(
    version: str,
    extras: tuple[str, ...],
    targets: Path,
    progress: Progress,
    uv: Path,
    pythons: Sequence[Interpreter],
) -> Built:
    title = _title(version, extras)
    refused: list[tuple[Interpreter, str]] = []
    for python in pythons:
        minor = "{}.{}".format(*python.minor)
        progress(f"installing {title} for Python {minor} (first use; later runs reuse it)")
        name = f"jax-{version}-py{minor}-{_hash(version, str(python), *extras)}"
        built = Built(targets / name, version, extras, python.minor)
        message = _install(built, python, uv)
        if message is None:
            return built
        if re.search(_NO_SUCH_VERSION.format(re.escape(version)), message):
            raise TargetError(
                f"There is no jax=={version} on the package index: ask for a version that was "
                f"released, or for newest. (uv: {message})"
            )
        if _UNREACHABLE.search(message):
            raise _no_index(title, targets, message)
        if not _DEPENDS_ON_PYTHON.search(message):
            raise TargetError(f"{title} could not be installed for Python {python}: {message}")
        progress(f"{title} does not run on Python {minor}")
        refused.append((python, message))
    raise _no_python(title, refused)


def _install(built: Built, python: Interpreter, uv: Path) -> str | None:
    """Build one environment; return None on success, else uv's message."""
    folder = built.folder
    # The marker goes first: a removal that is interrupted must not leave a finished look.
    (folder / MARKER).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    wanted = [f"jax=={built.version}", *built.extras]
    if nightly.is_nightly(built.version):
        wanted += nightly.options()
    commands: list[list[str | Path]] = [
        [uv, "venv", "--no-project", "--python", python.path, folder],
        [uv, "pip", "install", "--python", built.python, *wanted],
    ]
    for command in commands:
        done = _run(command, INSTALL_TIMEOUT_S, folder=folder.parent)
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            return _uv_message(done)
    if not _works(built):
        shutil.rmtree(folder, ignore_errors=True)
        # Old releases of jax install without a word where no jaxlib was made for the Python.
        return "it was installed without a jaxlib, which has no wheels for this Python"
    marker = {"version": built.version, "extras": built.extras, "minor": built.minor}
    unfinished = folder / f"{MARKER}.part"
    unfinished.write_text(json.dumps(marker), "utf-8")
    unfinished.replace(folder / MARKER)
    return None


def _run(
    command: Sequence[str | Path], timeout_s: float, *, folder: Path, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_UV}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return subprocess.run(
            [*map(str, command), "--quiet"],
            # Run elsewhere, uv would take constraints from the project that the user stands in.
            cwd=folder,
            env={"UV_HTTP_RETRIES": HTTP_RETRIES, **environ, **_FOR_UV},
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TargetError(
            f"`{' '.join(map(str, command))}` did not finish within {timeout_s:.0f} s: "
            "the network or the package index may be slow; run again."
        ) from error


def _uv_message(done: subprocess.CompletedProcess[str]) -> str:
    """Return uv's message in one line, without its headings and arrows."""
    text = re.sub(r"^[^\w\n(`]*(?:error:|cause:)?", " ", done.stderr, flags=re.MULTILINE)
    text = " ".join(text.split())
    text = re.sub(r"^No solution found when resolving dependencies:?\s*", "", text)
    return text or f"exit status {done.returncode}"


def _uv() -> Path:
    try:
        return Path(uv_package.find_uv_bin())
    except FileNotFoundError as error:
        raise TargetError(
            "The uv program that installs JAX versions is missing: install the package uv."
        ) from error


def _some(pythons: Sequence[Interpreter] | None, uv: Path) -> Sequence[Interpreter]:
    found = interpreters.find(uv=uv) if pythons is None else pythons
    if not found:
        raise TargetError(
            f"No usable Python was found, only Python {PYTHON_RANGE} will do: install one from "
            "the system's packages (python3.12) or with `pyenv install 3.12`, then run again."
        )
    return found


def _locked_at_once(lock: filelock.FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return False
    return True


def _title(version: str, extras: tuple[str, ...]) -> str:
    return f"jax=={version}" + (f" with {', '.join(extras)}" if extras else "")


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _no_index(title: str, targets: Path, message: str) -> TargetError:
    kept = sorted({built.version for built in usable(targets)}, key=Version)
    instead = ", ".join(f"jax=={version}" for version in kept) or "nothing yet"
    return TargetError(
        f"{title} could not be installed: there is no network, or no package index answers. "
        f"Connect, or use what the cache has: {instead}. (uv: {message})"
    )


def _no_python(title: str, refused: Sequence[tuple[Interpreter, str]]) -> TargetError:
    found = ", ".join(str(python) for python, _ in refused)
    needs = next((m[1] for _, message in refused if (m := _NEEDS_PYTHON.search(message))), None)
    if needs is None:
        why = "; ".join(
            f"Python {'.'.join(map(str, p.minor))}: {message}" for p, message in refused
        )
        return TargetError(
            f"No Python on this machine can run {title} (found {found}): install another from "
            f"Python {PYTHON_RANGE}, or ask for another version. (uv: {why})"
        )
    oldest = re.search(r">=?(\d+\.\d+)", needs)
    example = oldest[1] if oldest else "{}.{}".format(*NEWEST_PYTHON)
    return TargetError(
        f"{title} needs {needs}, and this machine has only {found}: install such a Python, for "
        f"instance python{example} from the system's packages or `pyenv install {example}`, then "
        "run again."
    )
