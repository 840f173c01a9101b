"""List the files of a scan: those below the named paths, not following links out of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from conformance.scanning.findings import Unread

PYTHON, SCRIPT, REQUIREMENTS = "python", "script", "requirements"
MOST_FILES = 200_000

_SCRIPTS = frozenset(
    {
        *(".sh", ".bash", ".zsh", ".sbatch", ".slurm", ".yml", ".yaml", ".env", ".mk", ".cfg"),
        *(
            ".ini",
            ".dockerfile",
            ".service",
            ".toml",
            ".ksh",
            ".csh",
            ".fish",
            ".pbs",
            ".lsf",
            ".just",
        ),
    }
)
_NAMED = ("dockerfile", "containerfile", "makefile", ".env", "jenkinsfile", "justfile", "procfile")
_SKIPPED = frozenset(
    {
        ".ipynb_checkpoints",
        "__pycache__",
        "node_modules",
        "site-packages",
        ".git",
        ".hg",
        ".tox",
        ".venv",
        ".eggs",
    }
)


class PathError(ValueError):
    """A path that cannot be scanned; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file to scan: its path, its kind, and its name in the report."""

    file: Path
    path: str
    kind: str
    inside: PurePosixPath  # from its root on, or from the package of which its root is a part


def kind_of(name: str) -> str:
    """Return the kind of a file by its name; empty if it is not scanned."""
    lower = name.lower()
    if lower.endswith((".py", ".pyi", ".ipynb")):
        return PYTHON
    suffix = os.path.splitext(lower)[1]
    if suffix in (".txt", ".in") and ("requirements" in lower or "constraints" in lower):
        return REQUIREMENTS
    if suffix in _SCRIPTS or lower.startswith(_NAMED):
        return SCRIPT
    return ""


def listed(
    paths: Sequence[Path], excluded: Sequence[str] = ()
) -> tuple[list[Listed], list[Unread]]:
    """Return the files below the paths; PathError if a path does not exist or contains nothing to
    scan.
    """
    found: dict[Path, Listed] = {}
    left: list[Unread] = []
    for path in paths:
        if not path.exists():
            raise PathError(f"{path}: there is no such file or folder: check the path")
        root = path.resolve()
        if path.is_file():
            kind = kind_of(path.name) or PYTHON
            found[root] = Listed(root, _shown(path), kind, PurePosixPath(path.name))
            continue
        package = _package(root)
        for file in _below(root):
            inside = file.relative_to(root)
            if any(fnmatch(inside.as_posix(), pattern) for pattern in excluded):
                continue
            if not (kind := kind_of(file.name)):
                continue
            within = package / inside
            shown = _shown(path / inside)
            if file.is_symlink() and not file.resolve().is_relative_to(root):
                left.append(Unread(shown, "it is a link out of the tree"))
                continue
            if file.exists() and not file.is_file():  # reading a pipe would wait for its writer
                left.append(Unread(shown, "it is no regular file"))
                continue
            found.setdefault(
                file.resolve(), Listed(file, shown, kind, PurePosixPath(within.as_posix()))
            )
            if len(found) > MOST_FILES:
                raise PathError(f"{path}: more than {MOST_FILES:,} files; name a part of it")
    if not found and not left:
        raise PathError(
            f"{', '.join(map(str, paths))}: no Python file, script or requirements file is in "
            "it: name another path"
        )
    return list(found.values()), left


def _package(folder: Path) -> PurePosixPath:
    """Return the path of a folder within the package that it belongs to; empty if to none."""
    parts: list[str] = []
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return PurePosixPath(*parts)


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(
            one
            for one in folders
            if one not in _SKIPPED
            and not os.path.islink(os.path.join(folder, one))
            and not os.path.exists(os.path.join(folder, one, "pyvenv.cfg"))
        )
        for name in sorted(names):
            yield Path(folder, name)


def _shown(path: Path) -> str:
    return PurePosixPath(os.path.normpath(path)).as_posix()
