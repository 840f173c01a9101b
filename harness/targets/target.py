"""Resolve the value of --target to a Python that has exactly that JAX.

A run must not depend on what the controller has installed, nor a worker on the user's shell: this
module isolates them, and reports every failure as one TargetError before any test runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from conformance.spec.names import CPU
from harness.targets import environments
from harness.targets.environments import Progress, TargetError
from harness.targets.interpreters import (
    PYTHON_RANGE,
    Facts,
    Interpreter,
    NoAnswerError,
    facts,
    in_range,
)
from harness.targets.platforms import PLATFORMS, Platform

__all__ = [
    "Spec",
    "Target",
    "TargetError",
    "cached",
    "default_cache",
    "describe",
    "expand_all",
    "list_releases",
    "parse_spec",
    "provision",
    "resolve_newest",
    "worker_environment",
    "worker_path",
]

WORKER_PACKAGES = ("conformance", "harness")
ALL = "all"  # stands for every stable release from the first on
FIRST_RELEASE = "0.7.0"  # the oldest that has legacy and new pmap
PIN = "+"  # stands before a library of a target, as in jax==0.8.3+flax==0.12.0
_PINNED = re.compile(r"(?:\s*\+\s*[\w.-]+\s*==\s*[\w.]+)+$")
ALWAYS_DESCRIBED = ("jax", "jaxlib", "numpy")


@dataclass(frozen=True, slots=True)
class Spec:
    """A requested target; `value` is the version, or the interpreter's path."""

    kind: Literal["current", "version", "newest", "nightly", "interpreter"]
    value: str = ""
    pins: tuple[str, ...] = ()

    def __str__(self) -> str:
        jax = f"jax=={self.value}" if self.kind == "version" else self.value or self.kind
        return PIN.join((jax, *self.pins))


@dataclass(frozen=True, slots=True)
class Target:
    """A target that is available on this machine: a Python with its JAX."""

    spec: str
    python: Path
    extras: tuple[str, ...] = ()
    environment: Path | None = None

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of what is installed beside JAX."""
        return tuple(Requirement(one).name for one in self.extras)


def parse_spec(text: str) -> Spec:
    """Parse a spec: `current`, `newest`, `nightly`, `jax==0.9.0` or `0.9.0`, or a Python's path.

    A nightly wheel has a version too: `jax==0.12.1.dev20261122`. TargetError if it is none of
    these.
    """
    text = text.strip()
    if _PINNED.search(text):
        jax, *pins = map(str.strip, text.split(PIN))
        spec = parse_spec(jax)
        if spec.kind in ("current", "interpreter"):
            raise TargetError(f"{text!r}: nothing can be installed beside the JAX of {spec}.")
        return replace(spec, pins=_normalised(pins))
    if text == "current":
        return Spec("current")
    if text == "newest":
        return Spec("newest")
    if text == "nightly":
        return Spec("nightly")
    exact = re.fullmatch(r"(?:jax\s*==\s*)?(\d+(?:\.\d+){1,3})(\.dev\d+)?", text)
    if exact:
        parts = [str(int(part)) for part in exact[1].split(".")]
        # 0.9 and 0.9.0 are one release, and must not become two environments.
        return Spec("version", ".".join(parts + ["0"] * (3 - len(parts))) + (exact[2] or ""))
    if os.sep in text or text.startswith("~"):
        # Links stay: a virtual environment's python is a link, and resolved it loses its packages.
        return Spec("interpreter", os.path.abspath(os.path.expanduser(text)))
    if re.match(r"jax\s*=\s*\d", text):
        why = f"write two equals signs: {text.replace('=', '==', 1)}"
    elif text.startswith("jax"):
        why = "only one exact version can be asked for, such as jax==0.9.0, or a nightly one"
    elif text == ALL:
        why = "it stands for many; name one, such as newest"
    else:
        why = "write current, newest, nightly, jax==0.9.0, or the path of a Python interpreter"
    raise TargetError(f"{text!r} is not a target: {why}.")


def default_cache() -> Path:
    """Return the folder of provisioned targets; PMAP_CONFORMANCE_CACHE moves it."""
    if named := os.environ.get("PMAP_CONFORMANCE_CACHE"):
        return Path(named).expanduser().absolute()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).absolute() / "pmap-conformance"
    return Path.home() / ".cache" / "pmap-conformance"


def provision(
    spec: Spec | str,
    *,
    cache: Path | None = None,
    extras: Sequence[str] = (),
    progress: Progress = lambda message: None,
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> Target:
    """Make a target usable, from the cache if possible, and verify that its Python has its JAX.

    `uv` and `pythons` replace the uv program and the interpreters of this machine in tests.
    """
    spec = parse_spec(spec) if isinstance(spec, str) else spec
    wanted = _normalised([*spec.pins, *_unpinned(extras, spec.pins)])
    if spec.kind == "current":
        return _existing(spec, Path(sys.executable), wanted)
    if spec.kind == "interpreter":
        return _existing(spec, Path(spec.value), wanted)
    cache = _cache(cache)
    try:
        if spec.kind == "newest":
            newest = resolve_newest(cache=cache, extras=wanted, uv=uv, pythons=pythons)
            spec = replace(parse_spec(newest), pins=spec.pins)
        elif spec.kind == "nightly":
            night = environments.newest_nightly(wanted, cache / "targets", uv=uv, pythons=pythons)
            spec = Spec("version", night, spec.pins)
        python = environments.provide(
            spec.value, wanted, cache / "targets", progress=progress, uv=uv, pythons=pythons
        )
    except OSError as error:
        raise _unwritable(str(spec), cache, error) from error
    return Target(str(spec), python, wanted, environment=python.parent.parent)


def resolve_newest(
    *,
    cache: Path | None = None,
    extras: Sequence[str] = (),
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> str:
    """Return `jax==X` for the newest stable JAX that any Python of this machine can run.

    Without an index it is the cache's newest: each result names the version it was made with.
    """
    cache = _cache(cache)
    newest = environments.newest(_normalised(extras), cache / "targets", uv=uv, pythons=pythons)
    return f"jax=={newest}"


def expand_all(
    texts: Sequence[str],
    *,
    cache: Path | None = None,
    extras: Sequence[str] = (),
    uv: Path | None = None,
    pythons: Sequence[Interpreter] | None = None,
) -> list[str]:
    """Return the specs, each once, with every stable release from 0.7.0 on in place of `all`.

    TargetError if no index answers: the cache does not know which releases there are.
    """
    found: list[str] = []
    for text in texts:
        if text.strip() != ALL:
            found.append(text)
            continue
        targets = _cache(cache) / "targets"
        last = environments.newest(_normalised(extras), targets, uv=uv, pythons=pythons)
        between = environments.releases(FIRST_RELEASE, last, targets, uv=uv, pythons=pythons)
        found += [f"jax=={release}" for release in between]
    return list(dict.fromkeys(found))


def list_releases(first: Spec, last: Spec, *, cache: Path | None = None) -> list[str]:
    """Return the releases of JAX from one version to another on the package index.

    TargetError if a version is invalid or older than FIRST_RELEASE, they are in reverse order, or
    no index answers.
    """
    for one in (first, last):
        if one.kind != "version":
            raise TargetError(f"{one} is not a release: write a version, such as jax==0.9.0.")
        if Version(one.value) < Version(FIRST_RELEASE):
            raise TargetError(
                f"{one} is older than jax=={FIRST_RELEASE}, the first that can be run: name that "
                "or a newer one."
            )
    if Version(first.value) >= Version(last.value):
        raise TargetError(f"{first} is not older than {last}: give the older release first.")
    return environments.releases(first.value, last.value, _cache(cache) / "targets")


def list_nights(first: str, last: str, *, cache: Path | None = None) -> list[str]:
    """Return the nightly wheels of JAX between two releases; TargetError without their index."""
    return environments.nights(first, last, _cache(cache) / "targets")


def cached(cache: Path | None = None) -> list[Target]:
    """Return the targets in the cache that work without a network, oldest JAX first."""
    cache = _cache(cache)
    usable = environments.usable(cache / "targets")
    return [
        Target(f"jax=={built.version}", built.python, built.extras, built.folder)
        for built in sorted(usable, key=lambda one: (Version(one.version), one.extras))
    ]


def describe(target: Target) -> dict[str, str]:
    """Return the versions that a report names (jax, jaxlib, numpy, extras, python) and the machine.

    The target's Python is asked, and reads metadata only: importing jax would take seconds.
    TargetError if it does not answer, or lacks a package.
    """
    names = dict.fromkeys((*ALWAYS_DESCRIBED, *(Requirement(one).name for one in target.extras)))
    try:
        known = facts(target.python, names)
    except NoAnswerError as error:
        raise TargetError(
            f"Target {target.spec} no longer runs: {target.python}: {error}. Provision it again."
        ) from error
    return {**known.packages, "python": known.python, "machine": known.machine}


def worker_path(cache: Path | None = None, catalogue: Iterable[str] = ()) -> Path:
    """Return a folder for a worker's path: this checkout's `conformance` and `harness`, the
    packages of the modules of `catalogue`, and nothing else.

    The folder that holds the packages themselves may be the controller's site-packages, whose jax
    would shadow the target's.
    """
    cache = _cache(cache)
    within = (module.partition(".")[0] for module in catalogue)
    sources = {name: _package(name) for name in dict.fromkeys((*WORKER_PACKAGES, *within))}
    try:
        return _links(cache / "workers", sources)
    except OSError:
        # Copies go stale where links do not, so these are addressed by content.
        try:
            return _copies(cache / "workers", sources)
        except OSError as error:
            raise _unwritable("The workers' path", cache, error) from error


def worker_environment(
    target: Target,
    base: Mapping[str, str],
    *,
    platform: Platform = PLATFORMS[CPU],
    cache: Path | None = None,
    catalogue: Iterable[str] = (),
) -> dict[str, str]:
    """Return the variables of a worker process, the same for every target.

    It can import the modules of `catalogue`, beside this project's.

    The controller's variables about Python, JAX, XLA, TensorFlow and pytest are removed, because
    they would change what a probe observes.
    """
    private = ("PYTHON", "JAX_", "TF_", "PYTEST_")
    kept = {
        name: value
        for name, value in base.items()
        if not name.startswith(private) and name not in ("VIRTUAL_ENV", "XLA_FLAGS")
    }
    return {
        **kept,
        "PYTHONPATH": str(worker_path(cache, catalogue)),
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "JAX_PLATFORMS": platform.backend,
        **platform.variables,
    }


def _cache(named: Path | None) -> Path:
    # Absolute, since uv is started in another folder than this process.
    return default_cache() if named is None else named.absolute()


def _unwritable(subject: str, cache: Path, error: OSError) -> TargetError:
    return TargetError(
        f"{subject} could not be stored in {cache}: {error}. "
        "Set PMAP_CONFORMANCE_CACHE to a folder that can be written to."
    )


def _normalised(extras: Iterable[str]) -> tuple[str, ...]:
    """Return extras in one spelling and order, so that a set of extras has one environment."""
    wanted = set()
    for text in extras:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise TargetError(
                f"{text!r} is not a requirement: write a package's name, such as flax or "
                "flax>=0.10."
            ) from error
        requirement.name = canonicalize_name(requirement.name)
        wanted.add(str(requirement))
    return tuple(sorted(wanted))


def _unpinned(extras: Iterable[str], pins: Iterable[str]) -> list[str]:
    """The extras of which a target names no version."""
    pinned = {Requirement(one).name for one in pins}
    return [one for one in _normalised(extras) if Requirement(one).name not in pinned]


def _existing(spec: Spec, python: Path, extras: tuple[str, ...]) -> Target:
    """Return the target of a user's Python, into which nothing is installed; TargetError if it
    lacks something.
    """
    needed = [Requirement(one) for one in ("jax", "jaxlib", *extras)]
    try:
        known = facts(python, [one.name for one in needed])
    except NoAnswerError as error:
        raise TargetError(
            f"{python} is not a Python that runs ({error}): "
            "give the path of an interpreter, such as VENV/bin/python."
        ) from error
    if not in_range(known.version):
        raise TargetError(
            f"{python} is Python {known.python}, and workers run on Python {PYTHON_RANGE}: "
            "give another interpreter, or a version such as jax==0.9.0."
        )
    missing = [str(one) for one in needed if not _has(known, one)]
    if missing:
        raise TargetError(
            f"{python} (target {spec}) has no {', '.join(missing)}: "
            f"install it with `uv pip install --python {python} {' '.join(missing)}`."
        )
    return Target(str(spec), python, extras)


def _has(known: Facts, wanted: Requirement) -> bool:
    version = known.packages.get(wanted.name)
    return version is not None and wanted.specifier.contains(version, prereleases=True)


def _hash(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _package(name: str) -> Path:
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise TargetError(f"The package {name} of this project is not installed: install it again.")
    return Path(found.submodule_search_locations[0]).resolve()


def _links(parent: Path, sources: Mapping[str, Path]) -> Path:
    folder = parent / _hash(str(source).encode() for source in sources.values())
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        link = folder / name
        if link.is_symlink() and link.readlink() == source:
            continue
        # In one step: a worker that starts meanwhile sees the whole package or none.
        with tempfile.TemporaryDirectory(dir=parent) as scratch:
            fresh = Path(scratch) / name
            fresh.symlink_to(source, target_is_directory=True)
            fresh.replace(link)
    return folder


def _copies(parent: Path, sources: Mapping[str, Path]) -> Path:
    files = {
        f"{name}/{path.relative_to(source).as_posix()}": path
        for name, source in sources.items()
        for path in sorted(source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    folder = parent / _hash(
        part for name, path in files.items() for part in (name.encode(), path.read_bytes())
    )
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        fresh = Path(scratch) / "copy"
        for name, path in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, fresh / name)
        try:
            fresh.rename(folder)
        except OSError:
            # Another process was first, with the same content.
            if not folder.is_dir():
                raise
    return folder
