"""`--changed-since REF`: the clauses that the edits since a Git revision touch."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance.catalogue.dependencies import touched
from conformance.catalogue.loading import PACKAGE, Catalogue
from conformance.commandline.counting import counted
from conformance.judging import deviations
from conformance.judging.deviations import Deviation

ROOT = Path(deviations.__file__).parents[2]
CLAUSES = "conformance"  # the package in which clauses, and all that they use, are written
SECTIONS = PACKAGE.replace(".", "/")


def clauses(catalogue: Catalogue, ref: str, progress: Callable[[str], None]) -> tuple[str, ...]:
    """Return the ids of the clauses whose program or deviation entries differ from those at `ref`.

    ValueError if Git fails.
    """
    files = [ROOT / one for one in _changed_files(ref)]
    modules = {_module(file): file for file in files if file.suffix == ".py" and file.exists()}
    found = touched(
        catalogue.clauses.values(), modules, lambda name: _at(ref, _relative(modules[name]))
    )
    for file in files:
        if file.match(f"{SECTIONS}/*/*.toml"):
            changed = _changed_entries(ref, file)
            found.update(id for one in changed for id in one.named_in(catalogue.clauses))
    shared = sorted(name for name in modules if not name.startswith(f"{PACKAGE}."))
    if shared:
        progress(
            f"{', '.join(shared)} changed as well: where they serve all clauses, --tier core shows "
            "each fact once"
        )
    progress(f"{counted(len(found), 'clause differs', 'clauses differ')} from {ref}")
    return tuple(sorted(found))


def _changed_files(ref: str) -> list[str]:
    """Return the files of the clauses' package that differ from `ref`, new ones included."""
    differ = _git("diff", "--name-only", "--relative", ref, "--", CLAUSES, ref=ref)
    new = _git("ls-files", "--others", "--exclude-standard", "--", CLAUSES, ref=ref)
    return sorted({*differ.splitlines(), *new.splitlines()})


def _changed_entries(ref: str, file: Path) -> Sequence[Deviation]:
    """Return the deviation entries of a file that were added, changed or removed."""
    now = deviations.load(file) if file.exists() else ()
    text = _at(ref, _relative(file))
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, file.name)
        before.write_text(text or "", encoding="utf-8")
        then = deviations.load(before)
    return [one for one in (*now, *then) if (one in now) != (one in then)]


def _at(ref: str, file: str) -> str | None:
    """Return a file's text at a revision; None if it did not exist."""
    ran = _run("show", f"{ref}:./{file}")
    return ran.stdout if ran.returncode == 0 else None


def _git(*words: str, ref: str) -> str:
    ran = _run(*words)
    if ran.returncode != 0:
        problem = " ".join(ran.stderr.split()) or f"git ended with status {ran.returncode}"
        raise ValueError(f"--changed-since {ref}: {problem}")
    return ran.stdout


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ValueError(f"--changed-since needs git: {error.strerror}") from error


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _relative(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()
